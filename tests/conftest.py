"""What holds for every test."""

from hypothesis import HealthCheck, settings

# A busy machine must not fail a test that asks about values: how long things take is measured by benchmarks.
settings.register_profile("values", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("values")
