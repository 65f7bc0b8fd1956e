"""The parts of the campaign (``benchmarks/campaign.py``): adversarial trials whose answers are known exactly."""
