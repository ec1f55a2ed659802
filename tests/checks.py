"""The run-time type checker of the test suite: beartype, with an int welcome where a float is."""

from beartype import BeartypeConf, beartype

typechecked = beartype(conf=BeartypeConf(is_pep484_tower=True))
