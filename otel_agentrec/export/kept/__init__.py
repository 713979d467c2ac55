"""What other systems kept of a recording (a Collector's file, Jaeger's answer): is it whole, and does the recording agree?"""
