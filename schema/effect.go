package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// An Effect is a change of an agent's state that a hook requests. The agent's side applies the
// effects of a verdict in order, before its value. Exactly one field is set.
type Effect struct {
	// AppendMessage adds a message at the end of the conversation.
	AppendMessage *AppendMessage `json:"append_message,omitzero"`
	// SetFlag sets flags of the agent, which later events carry. A null value removes a flag.
	SetFlag map[string]jsontext.Value `json:"set_flag,omitzero"`
	// DropMessages removes messages from the conversation.
	DropMessages *DropMessages `json:"drop_messages,omitzero"`
}

// AppendMessage is a message to add.
type AppendMessage struct {
	// Role is system, user or assistant; empty: system.
	Role string `json:"role,omitzero"`
	// Content is the text. It must not be empty.
	Content string `json:"content"`
}

// DropMessages selects messages to remove: those that match all of its fields. A call and its
// results go together, because model APIs reject one without the other. System messages stay
// unless Role is "system".
type DropMessages struct {
	// First and Last limit the removal to that many of the first, or last, messages that match
	// the other fields; 0: all. Set at most one of them.
	First int `json:"first,omitzero"`
	Last  int `json:"last,omitzero"`
	// Role selects messages of one role; empty: of any role.
	Role string `json:"role,omitzero"`
	// Containing selects messages whose text contains it; empty: any text.
	Containing string `json:"containing,omitzero"`
}

// The bounds of effects.
const (
	// MaxEffects is how many effects one answer of a hook may have.
	MaxEffects = 64
	// MaxFlags is how many flags an agent may have. MaxFlag limits a flag's name, and
	// MaxFlagValue its JSON value, both in bytes.
	MaxFlags     = 256
	MaxFlag      = 128
	MaxFlagValue = 16 << 10
)

// ParseEffect reads one effect. Its error says what is wrong and what to write instead.
func ParseEffect(v jsontext.Value) (Effect, error) {
	var e Effect
	var members map[string]jsontext.Value
	if v.Kind() != '{' {
		return e, fmt.Errorf("an effect is a JSON object such as %s, not %s", exampleEffect, KindName(v.Kind()))
	}
	if err := Unmarshal(v, &members); err != nil {
		return e, sentence("the effect", err)
	}
	if len(members) != 1 {
		return e, fmt.Errorf("an effect has one member, append_message, set_flag or drop_messages, and this one has %d", len(members))
	}
	for name := range members {
		if !slices.Contains([]string{"append_message", "set_flag", "drop_messages"}, name) {
			return e, fmt.Errorf("there is no effect %.40q; write append_message, set_flag or drop_messages", name)
		}
		if k := members[name].Kind(); k != '{' {
			return e, fmt.Errorf("%s is %s; write an object such as %s", name, KindName(k), exampleEffect)
		}
	}
	if err := Unmarshal(v, &e); err != nil {
		return e, sentence("the effect", err)
	}
	if err := checkPicks(members["drop_messages"]); err != nil {
		return e, err
	}
	return e, e.Check()
}

const exampleEffect = `{"append_message": {"role": "system", "content": "…"}}`

// Check returns an error if the effect is not valid. It also checks effects that a Go program
// built.
func (e *Effect) Check() error {
	n := 0
	for _, there := range [...]bool{e.AppendMessage != nil, e.SetFlag != nil, e.DropMessages != nil} {
		if there {
			n++
		}
	}
	switch {
	case n == 0:
		return fmt.Errorf("an effect has one member, append_message, set_flag or drop_messages, and this one has none")
	case n > 1:
		return fmt.Errorf("an effect has one member, append_message, set_flag or drop_messages, and this one has %d", n)
	case e.AppendMessage != nil:
		return e.AppendMessage.check()
	case e.DropMessages != nil:
		return e.DropMessages.check()
	}
	return checkFlags(e.SetFlag)
}

func (a *AppendMessage) check() error {
	switch a.Role {
	case "", RoleSystem, RoleUser, RoleAssistant:
	default:
		return fmt.Errorf("append_message has the role %.40q; write system, user or assistant", a.Role)
	}
	if a.Content == "" {
		return fmt.Errorf("append_message has no content; write the text")
	}
	return nil
}

func (d *DropMessages) check() error {
	switch {
	case d.First < 0 || d.Last < 0:
		return fmt.Errorf("drop_messages counts from 1; write first or last as a number above 0")
	case d.First > 0 && d.Last > 0:
		return fmt.Errorf("drop_messages has first and last; write one of them")
	case d.First+d.Last == 0 && d.Role == "" && d.Containing == "":
		return fmt.Errorf("drop_messages picks nothing; write first, last, role or containing")
	}
	switch d.Role {
	case "", RoleSystem, RoleUser, RoleAssistant, RoleTool:
		return nil
	}
	return fmt.Errorf("drop_messages has the role %.40q; write system, user, assistant or tool", d.Role)
}

// checkPicks rejects unknown members of drop_messages. If they were ignored, more
// messages than intended would be removed.
func checkPicks(v jsontext.Value) error {
	var members map[string]jsontext.Value
	if len(v) == 0 {
		return nil
	}
	if err := Unmarshal(v, &members); err != nil {
		return sentence("drop_messages", err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "first", "last", "role", "containing":
		default:
			return fmt.Errorf("drop_messages has no %.40q; write first, last, role or containing", name)
		}
	}
	return nil
}

func checkFlags(flags map[string]jsontext.Value) error {
	if len(flags) == 0 || len(flags) > MaxFlags {
		return fmt.Errorf("set_flag sets %d flags; set 1 to %d", len(flags), MaxFlags)
	}
	for name, v := range flags {
		if name == "" || len(name) > MaxFlag {
			return fmt.Errorf("set_flag has a name of %d bytes; write 1 to %d", len(name), MaxFlag)
		}
		if len(v) > MaxFlagValue {
			return fmt.Errorf("the flag %.40q has %d bytes; write at most %d", name, len(v), MaxFlagValue)
		}
	}
	return nil
}
