"""A shell program that plays all roles of `plan-execute`, by a file in its directory."""

import json
from pathlib import Path

# `say` has a line for each time that a role is asked: `ROLE WORD`; without one all goes well.
_SCRIPT = r"""#!/bin/sh
word=$(grep -m1 "^$UWF_ROLE " say 2> /dev/null)
[ -z "$word" ] || sed -i "0,/^$word\$/{/^$word\$/d}" say
echo "$UWF_ROLE" >> asked
report() {
  mkdir -p .state
  printf '{"completed": %s, "summary": "%s", "files_created": [%s], "files_modified": [],
    "issues": [%s], "next_steps": []}' "$1" "$2" "${3:+\"$3\"}" "$4" > .state/status.json
  echo "$2"
}
case $word in
*hang) echo "I am at work." ; exec sleep 60 ;;
*limit)
  printf '{"kind": "limit", "resetAt": 4102444800000}' > "$UWF_STEP_DIR/failure.json"
  exit 1 ;;
*soon)
  printf '{"kind": "limit", "resetAt": %s000}' $(($(date +%s) + 1)) > "$UWF_STEP_DIR/failure.json"
  exit 1 ;;
*crash) exit 1 ;;
*incomplete) report false "Half of it." src "\"no network\"" ; exit ;;
*widen) mkdir -p src; report true "Done." 'src"], "plans": [], "plan": 1, "x": ["' ; exit ;;
*seize) report true "Done." 'src"], "plansOutput": {}, "maxRetries": 9, "x": ["' ; exit ;;
*lie) report true "All done." src/nowhere ; exit ;;
*silent) echo "All done, believe me." ; exit ;;
*gap) echo x > docs/plans/000-a.md; echo x > docs/plans/005-b.md; report true "Two." "" ; exit ;;
*none) report true "No plan is needed." ; exit ;;
*empty) : > docs/plans/000-x.md; report true "A plan." docs/plans/000-x.md ; exit ;;
*reject)
  printf '{"content": "", "meta": {"verified": false,
    "checks": [{"name": "files", "passed": false, "message": "none"}],
    "issues": ["缺少测试"], "suggestion": "write some"}}'
  exit ;;
esac
case $UWF_ROLE in
planner)
  mkdir -p docs/plans
  rm -f docs/plans/*
  echo "# 准备: make a folder. Done when src is there." > docs/plans/000-准备.md
  echo "# Write. Done when src/a is there." > docs/plans/001-write.md
  report true "Two plans." docs/plans/000-准备.md ;;
executor)
  mkdir -p src
  date > src/a
  report true "Done." src/a ;;
*)
  printf '{"content": "", "meta": {"verified": true,
    "checks": [{"name": "files", "passed": true, "message": "there"}],
    "issues": [], "suggestion": ""}}' ;;
esac
"""


def write_plan_agent(place: Path, *say: str) -> str:
    """Write the agent and what it is to *say* into *place*, and return the agent."""
    (place / "say").write_text("".join(f"{line}\n" for line in say))
    path = place / "plan-agent"
    path.write_text(_SCRIPT)
    path.chmod(0o755)
    return json.dumps({"command": str(path), "backoff": 0})
