package hooksyaml

import (
	"fmt"
	"strings"
)

// strangers are keys of other systems, with our keys.
var strangers = map[string]string{
	"command":     "write handler: with the program, and args:",
	"script":      "write handler: with its path",
	"run":         "write handler:",
	"function":    "write handler: with the function's dotted name",
	"url":         "write type: http and handler: with the URL",
	"if":          "write when:",
	"condition":   "write when:",
	"event":       "write the hook below its event, such as PreToolUse:",
	"hook_type":   "write the hook below its event, such as PreToolUse:",
	"tool":        "write matcher:",
	"tools":       `write matcher: with alternatives, such as "Write|Edit"`,
	"timeout_ms":  "write timeout: in seconds",
	"fail_open":   "a hook fails open unless it says fail_closed: true",
	"enabled":     "remove the hook, or write mode: shadow to only watch it",
	"disabled":    "remove the hook, or write mode: shadow to only watch it",
	"priority":    "hooks run in the order of the file",
	"order":       "hooks run in the order of the file",
	"agent":       "write the hook below agents: and the agent's id",
	"agent_id":    "write the hook below agents: and the agent's id",
	"hooks":       "write each hook as an item of its own, with its matcher",
	"secret":      "write sign: with the name of the environment variable that holds it",
	"token":       "write headers: with ${NAME} for the environment variable that holds it",
	"method":      "remove it: an http hook is always asked with POST",
	"ca":          "write it below tls:",
	"cert":        "write it below tls:",
	"key":         "write it below tls:",
	"interpreter": "write it below python: at the top of the file",
	"hosts":       "write it below python: at the top of the file",
	"memory":      "write it below python: at the top of the file",
	"recycle":     "write it below python: at the top of the file",
	"registered":  "remove it: it tells hooks that were registered at run time from those of files",
	"override":    "write it beside the list: PreToolUse: {override: true, hooks: [...]}",
}

func (r *reader) unknownField(d *draft, e entry) {
	hint, ok := strangers[e.key]
	if near := nearest(e.key, hookKeys); !ok && near != "" {
		d.mistaken = d.mistaken || near == "handler"
		hint = "did you mean " + quote(near) + "?"
	} else if !ok {
		hint = "a hook knows " + words(hookKeys)
	}
	if isEvent(e.key) {
		hint = "write the event above the list of hooks, not in one"
	}
	if strings.Contains(hint, "handler:") || hint == strangers["hooks"] || isEvent(e.key) {
		d.mistaken = true
	}
	r.fault(e.at, fmt.Sprintf("unknown key %s of a hook", quote(e.key)), hint)
}
