"""Sessions for free: model calls that name their conversation -> the events of that session's stream.

``messages`` takes message lists apart into what can be compared, ``call`` says what one model call was asked and answered,
``story`` is what a session holds and what is new in a call, ``book`` writes it under the stream's lock; ``live`` and
``recorded`` bring the calls, from a recorder that is recording and from a stream that is written.
"""
