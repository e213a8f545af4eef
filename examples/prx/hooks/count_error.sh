#!/bin/sh
# Publishes a metric for each error. prxbus finds the bus, the recursion depth and the cause in the environment.
exec prxbus pub prx.metrics.errors '{"count": 1}'
