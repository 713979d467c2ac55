"""What happened, once more: one node, or a whole run; answered from the recording (mock) or asked anew (live)."""
