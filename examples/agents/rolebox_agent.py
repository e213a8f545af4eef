"""An agent whose role has hooks: one turn, five lines of which are the hooks'. The model is made up.

prxbus up --role examples/roles/quality
python examples/agents/rolebox_agent.py
"""

from subscribers.adapters.rolebox import NotAllowed, Rolebox

with Rolebox("session-1", agent="example-agent", role="quality") as rolebox:
    print("user:", rolebox.chat_message("Add a hello to app.ts"))
    print("system:", rolebox.system_transform(["You write TypeScript."]))

    call = {"path": "/workspace/app.ts", "content": 'console.log("hello")'}
    try:
        call = rolebox.tool_before("write", call)
    except NotAllowed as refused:
        print("refused:", refused.reason)
    else:
        print("writes:", call)
        rolebox.tool_after("write", call, "written")

    print("system:", rolebox.system_transform(["You write TypeScript."]))
    rolebox.event("session.idle", {})
    if rolebox.problem:
        print("without its hooks:", rolebox.problem)
