package model

import (
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// Resolve lists the hooks that an event of an agent concerns and that workers
// run, shadow ones included, in the order in which they count: the global ones
// in registration order, then the agent's own.
func Resolve(cfg schema.Config, agent string, t schema.EventType, tool string) []schema.Hook {
	return slices.DeleteFunc(concerned(cfg, agent, t, tool), isStage)
}

// concerned returns all hooks of the event, including those that run in the aggregator.
func concerned(cfg schema.Config, agent string, t schema.EventType, tool string) []schema.Hook {
	var global, own []schema.Hook
	for _, h := range cfg.Hooks {
		switch {
		case h.Event != t, !concerns(h, tool), replaced(cfg, agent, h):
		case h.Agent == "":
			// An override drops the global hooks of its event, except system ones.
			if h.System || !overridden(cfg, agent, t) {
				global = append(global, h)
			}
		case isAgent(h.Agent, agent):
			own = append(own, h)
		}
	}
	return append(global, own...)
}

func overridden(cfg schema.Config, agent string, t schema.EventType) bool {
	return slices.ContainsFunc(cfg.Overrides, func(o schema.Override) bool {
		return o.Event == t && isAgent(o.Agent, agent)
	})
}

// isAgent reports whether an entry names an agent, by its exact id or by a glob.
func isAgent(entry, agent string) bool {
	return entry == agent || glob([]rune(entry), []rune(agent))
}

// concerns reports whether a hook concerns a tool. Matchers count only at events about tools.
func concerns(h schema.Hook, tool string) bool {
	switch h.Event {
	case schema.PreToolUse, schema.PostToolUse, schema.ToolError:
		return matches(h.Matcher, tool)
	}
	return true
}

// matches reports whether a matcher, with alternatives separated by |, matches a tool. An empty
// matcher matches every tool.
func matches(matcher, tool string) bool {
	if matcher == "" {
		return true
	}
	for alternative := range strings.SplitSeq(matcher, "|") {
		alternative = strings.TrimSpace(alternative)
		if alternative != "" && glob([]rune(alternative), []rune(tool)) {
			return true
		}
	}
	return false
}

// glob reports whether a pattern matches s. A * is any text, ? is one character, [seq] is one of
// some, and [!seq] is one of all others. A [ that is never closed is a plain character. Case
// counts.
func glob(pattern, s []rune) bool {
	if len(pattern) == 0 {
		return len(s) == 0
	}
	if pattern[0] == '*' {
		return glob(pattern[1:], s) || len(s) > 0 && glob(pattern, s[1:])
	}
	if len(s) == 0 {
		return false
	}
	if set, rest, ok := class(pattern); ok {
		return inClass(set, s[0]) && glob(rest, s[1:])
	}
	return (pattern[0] == '?' || pattern[0] == s[0]) && glob(pattern[1:], s[1:])
}

// class splits a leading [seq] off a pattern. A ] that comes first is a
// member, not the end.
func class(pattern []rune) (set, rest []rune, ok bool) {
	if pattern[0] != '[' {
		return nil, nil, false
	}
	first := 1
	if len(pattern) > first && pattern[first] == '!' {
		first++
	}
	for i := first + 1; i < len(pattern); i++ {
		if pattern[i] == ']' {
			return pattern[1:i], pattern[i+1:], true
		}
	}
	return nil, nil, false
}

func inClass(set []rune, c rune) bool {
	if set[0] == '!' {
		return !inRanges(set[1:], c)
	}
	return inRanges(set, c)
}

func inRanges(set []rune, c rune) bool {
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			if set[i] <= c && c <= set[i+2] {
				return true
			}
			i += 2
		} else if set[i] == c {
			return true
		}
	}
	return false
}

// Guarded reports whether some fail-closed hook matches a call: one that must
// not pass unjudged. An empty tool is an unknown one; then every fail-closed
// hook of the event counts. Shadow hooks guard nothing, since they never count,
// nor do those that only deliver.
func Guarded(cfg schema.Config, agent string, t schema.EventType, tool string) bool {
	if tool == "" {
		cfg.Hooks = slices.Clone(cfg.Hooks)
		for i := range cfg.Hooks {
			cfg.Hooks[i].Matcher = ""
		}
	}
	return slices.ContainsFunc(concerned(cfg, agent, t, tool), func(h schema.Hook) bool {
		return h.FailClosed && h.Mode != schema.Shadow && (!isStage(h) || h.Handler == "round_timeout_pre")
	})
}
