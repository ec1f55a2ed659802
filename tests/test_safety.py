"""No source can load a pickle: not by name, and not through an array file."""

import ast
from pathlib import Path

SOURCES = sorted((Path(__file__).parent.parent / "src").rglob("*.py"))
LOADERS = {"pickle", "cPickle", "_pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal", "torch"}


def test_no_pickle_is_ever_loaded():
    assert len(SOURCES) > 100
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if reason := _objection(node):
                found.append(f"{path.name}:{getattr(node, 'lineno', 0)} {reason}")
    assert found == []


def test_the_search_would_find_one():
    for text in ("import pickle", "from joblib import load", "np.load(f)", "np.load(f, allow_pickle=True)"):
        assert any(_objection(node) for node in ast.walk(ast.parse(text))), text
    assert not any(_objection(node) for node in ast.walk(ast.parse("np.load(f, allow_pickle=False)")))


def _objection(node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        names = {alias.name.split(".")[0] for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
        names = {(node.module or "").split(".")[0]}
    elif isinstance(node, ast.Call):
        return _call_objection(node)
    else:
        return ""
    return ", ".join(names & LOADERS)


def _call_objection(node: ast.Call) -> str:
    called = ast.unparse(node.func)
    if called in ("np.load", "numpy.load", "jnp.load", "jax.numpy.load"):
        plain = any(k.arg == "allow_pickle" and ast.unparse(k.value) == "False" for k in node.keywords)
        return "" if plain else called
    return called if called in ("pd.read_pickle", "yaml.load", "yaml.unsafe_load", "eval", "exec") else ""
