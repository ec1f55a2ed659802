"""The numbers the paper prints, for the columns beside ours; dataset 3 unless said otherwise."""

SPECIMENS = 22
SECONDS = {"bfgs-mesh": 44100.0, "newton-mesh": 2580.0, "newton-learned": 960.0}  # a fit; dataset 2, nine images
# By mask and truth: Dice with its standard deviation, HD95 and HD100 (mm).
SEGMENTATION = {
    ("shape", "CT by hand"): ("0.77 ± 0.023", "0.70", "1.91"),
    ("posterior", "CT by hand"): ("0.91 ± 0.015", "0.36", "1.68"),
    ("shape", "micro-CT"): ("0.76 ± 0.068", "0.67", "1.96"),
    ("posterior", "micro-CT"): ("0.91 ± 0.019", "0.36", "1.68"),
    ("CT by hand", "micro-CT"): ("0.93 ± 0.021", "0.19", "0.74"),
}
BY_LENGTH = {0.05: "0.84", 0.1: "0.85", 0.15: "0.85", 0.2: "0.82", 0.25: "0.84"}  # one image of dataset 2
FIT_LENGTH = 0.3  # mm
ROBUSTNESS = {"gauss-newton": "0.81 ± 0.1", "bfgs": "0.68 ± 0.23"}  # one image of dataset 2, ten starts
ATLAS = "0.68"
ELLIPSE_LENGTH = "0.021"
