"""What all tests share: hypothesis looks for counter-examples and never at the clock."""

from hypothesis import HealthCheck, settings

# Deadlines would be timed assertions, and this machine may be busy with other things.
settings.register_profile("hiboss", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hiboss")
