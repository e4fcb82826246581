package model

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// isEffect reports whether v is an effect: an object with one member, whose value is an object in
// that member's form.
func isEffect(v jsontext.Value) bool {
	name, body, ok := onlyMember(v)
	if !ok {
		return false
	}
	switch name {
	case "append_message":
		return isAppend(body)
	case "set_flag":
		return isFlags(body)
	case "drop_messages":
		return isDrop(body)
	}
	return false
}

// members returns the members of an object; nil: v is not an object.
func members(v jsontext.Value) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if v.Kind() != '{' || schema.Unmarshal(v, &m) != nil {
		return nil
	}
	return m
}

func onlyMember(v jsontext.Value) (name string, body map[string]jsontext.Value, ok bool) {
	all := members(v)
	for name, of := range all {
		body = members(of)
		return name, body, len(all) == 1 && body != nil
	}
	return "", nil, false
}

// isAppend reports whether m has a text that is not empty, in a role other than tool.
func isAppend(m map[string]jsontext.Value) bool {
	content, isText := text(m["content"])
	return isText && content != "" && isRole(m["role"], "system", "user", "assistant")
}

// isFlags reports whether m has flags, with names and values within the limits.
func isFlags(m map[string]jsontext.Value) bool {
	for name, v := range m {
		if name == "" || len(name) > schema.MaxFlag || len(v) > schema.MaxFlagValue {
			return false
		}
	}
	return len(m) > 0 && len(m) <= schema.MaxFlags
}

// isDrop reports whether m selects messages to drop, from one end only and by known criteria.
func isDrop(m map[string]jsontext.Value) bool {
	for name := range m {
		if !slices.Contains([]string{"first", "last", "role", "containing"}, name) {
			return false
		}
	}
	first, isFirst := count(m["first"])
	last, isLast := count(m["last"])
	part, isText := text(m["containing"])
	if !isFirst || !isLast || !isText || first > 0 && last > 0 {
		return false
	}
	role, _ := text(m["role"])
	return isRole(m["role"], "system", "user", "assistant", "tool") && (first > 0 || last > 0 || part != "" || role != "")
}

// isRole reports whether v is one of the known roles, or no role.
func isRole(v jsontext.Value, known ...string) bool {
	role, isText := text(v)
	return isText && (role == "" || slices.Contains(known, role))
}

// text returns v as a text. An absent value and null are the empty text.
func text(v jsontext.Value) (s string, ok bool) {
	return s, absent(v) || v.Kind() == '"' && schema.Unmarshal(v, &s) == nil
}

// count returns v as a number of at least 0. An absent value and null are 0.
func count(v jsontext.Value) (n int, ok bool) {
	return n, absent(v) || v.Kind() == '0' && schema.Unmarshal(v, &n) == nil && n >= 0
}
