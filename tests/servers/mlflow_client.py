"""Run by the interpreter that has MLflow: ``URL EXPERIMENT``; prints each trace of the experiment as a line of JSON."""

import json
import sys

import mlflow


def main():
    url, experiment = sys.argv[1:]
    mlflow.set_tracking_uri(url)
    for trace in mlflow.search_traces(locations=[experiment], return_type="list"):
        print(json.dumps(trace.to_dict()))


main()
