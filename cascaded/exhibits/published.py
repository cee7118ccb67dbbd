"""What the paper measured, as it prints it; here alone, so that its effects and its tables cannot disagree."""

from __future__ import annotations

FINAL = {  # accuracy at the last step, by lambda
    "cifar10": {"0": 91.22, "0.25": 91.65, "0.5": 91.45, "0.83": 90.98, "1": 88.75},
    "cifar100": {"0": 67.48, "0.25": 67.35, "0.5": 67.00, "0.83": 65.06, "1": 63.20},
    "tinyimagenet": {"0": 50.74, "0.25": 52.03, "0.5": 52.25, "0.83": 51.39, "1": 49.86},
    "terriers": {"0": 67.2, "0.55": 69.1, "1": 59.8},
}
FINAL_CE = {"cifar10": 91.91, "cifar100": 65.56, "tinyimagenet": 52.46}
FINAL_SHALLOW = {"terriers": 63.2}
RHO = {"centrality": (0.140, 0.352), "C-score": (0.326, 0.489), "human agreement": (0.153, 0.142)}
"""CascadedCE, CascadedTD(0)."""
SPLITS = {"centrality": "validation", "C-score": "validation", "human agreement": "test"}
"""What these are of: training images judged by networks that have not seen them, or test images."""
CE_STEP, TD_STEP = 8, 2
"""The first step with a taxonomic compliance of .35."""
PERSISTENT = {  # SerialCE on every frame, CascadedCE, CascadedTD(0)
    "focus": (84.27, 83.75, 87.31),
    "occlusion": (86.26, 82.73, 89.76),
    "perlin": (85.18, 84.56, 87.67),
    "resolution": (84.53, 85.40, 88.19),
    "rotation": (89.11, 73.79, 87.51),
    "translation": (87.55, 76.72, 83.42),
}
TRANSIENT = {  # the drop, in the same order
    "focus": (0.62, 0.66, 0.00),
    "occlusion": (7.70, 8.25, 0.93),
    "perlin": (0.86, 0.87, 0.00),
    "resolution": (0.81, 0.53, 0.18),
    "rotation": (0.24, 4.12, 0.00),
    "translation": (0.72, 4.17, 1.53),
}
AUROC = {"msp": (88.8, 90.2), "entropy": (90.5, 92.7), "softmax": (92.6, 95.7), "logits": (96.7, 97.3)}
"""The last step, all steps."""
FPR = {"msp": (63.0, 46.4), "entropy": (51.2, 38.9), "softmax": (31.7, 20.5), "logits": (17.5, 13.7)}
BASELINE_AUROC, BASELINE_FPR = 89.5, 63.0
"""The highest probability as it is, without MetaCog."""
HOURS_CE, HOURS_TD = 1.48, 1.81
"""Training on CIFAR-10 with eight V100s."""
