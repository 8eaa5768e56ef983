"""For tests of hiboss, and of adapters, providers and programs that use it.

- `running_daemon`: a real daemon process in a home of its own
- `frozen_clock`: a daemon inside the test, whose clock the test moves
- `scripted_adapter`: an adapter that follows a script, in place of a platform
- `adapter_contract` (with `adapter_platform_rules`), `adapter_rig`: the tests that every adapter must pass,
  to inherit from
- `recorded_run`: a turn and a run for a provider, without a daemon
- `provider_contract`, `provider_rig`: the tests that every provider must pass, to inherit from
- `model_server`: the Messages API and the Responses API on loopback, for programs that call a model
"""

import sys

if (
    pytest := sys.modules.get("pytest")
) is not None:  # only tests have it: their assertions explain themselves
    pytest.register_assert_rewrite(
        "hiboss.testing.adapter_contract",
        "hiboss.testing.adapter_platform_rules",
        "hiboss.testing.provider_contract",
    )
