"""Any torch model with skip connections as a cascaded network."""
