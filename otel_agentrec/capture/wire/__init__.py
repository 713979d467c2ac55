"""Model calls as they stood on the wire: recorded, attributed to the spans that made them, amended onto their records."""
