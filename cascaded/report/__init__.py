"""Report: exhibits as figures and one page. It draws and computes nothing."""
