"""A page that shows a network at work: its prediction step by step, and under noise. Needs Gradio."""
