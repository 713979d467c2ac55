"""Run by the interpreter that has kafka-python: ``BROKER TOPIC AT_LEAST SECONDS``; prints a JSON line for each record.

It ends once it has read all partitions to their ends and that is at least so many records, or the time is over.
"""

import base64
import json
import sys
import time

from kafka import KafkaConsumer, TopicPartition


def text(data):
    return None if data is None else base64.b64encode(data).decode()


def main():
    broker, topic, at_least, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    consumer = KafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest", enable_auto_commit=False)
    until = time.monotonic() + seconds
    while not (partitions := consumer.partitions_for_topic(topic)):
        if time.monotonic() > until:
            sys.exit(f"{broker} has no topic {topic}")
        time.sleep(0.2)
    places = [TopicPartition(topic, number) for number in sorted(partitions)]
    consumer.assign(places)
    seen = 0
    while time.monotonic() < until:
        for records in consumer.poll(timeout_ms=500).values():
            for one in records:
                seen += 1
                told = {
                    "partition": one.partition,
                    "offset": one.offset,
                    "key": text(one.key),
                    "value": text(one.value),
                }
                print(json.dumps(told))
        ends = consumer.end_offsets(places)
        if seen >= at_least and all(consumer.position(place) >= ends[place] for place in places):
            break
    consumer.close()


main()
