"""What was learnt: gap study, solver benchmark, the paper's figures, the gate. Imports every other room."""
