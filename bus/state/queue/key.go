package queue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// The first tokens of items' keys, and the prefixes of the third one if it is no number: a name of the producer, or a
// generated name, which is never repeated.
const (
	agentScope   = "a-"
	sessionScope = "s-"
	allScope     = "all"
	namedItem    = "k-"
	nameless     = "u-"
)

// scopeToken returns the first token of the keys of items for s.
func scopeToken(s schema.Scope) (string, error) {
	switch {
	case s.Agent != "" && s.Session != "":
		return "", errors.New("an item is for an agent or for a session; name one of them")
	case s.Agent != "":
		tok, err := bus.Token(s.Agent)
		return agentScope + tok, err
	case s.Session != "":
		tok, err := bus.Token(s.Session)
		return sessionScope + tok, err
	}
	return allScope, nil
}

// keyOf returns the key of an item. An item without a number and a name gets a unique name.
func keyOf(it *schema.Item) (string, error) {
	scope, err := scopeToken(it.Scope)
	if err != nil {
		return "", err
	}
	producer, err := bus.Token(it.Producer)
	if err != nil {
		return "", fmt.Errorf("the producer: %w", err)
	}
	var third string
	switch {
	case it.Number > 0 && it.Name != "":
		return "", fmt.Errorf("the item has both the number %d and the name %.64q; use one of them", it.Number, it.Name)
	case it.Number > 0:
		third = strconv.FormatUint(it.Number, 10)
	case it.Name != "":
		name, err := bus.Token(it.Name)
		if err != nil {
			return "", fmt.Errorf("the key %.64q: %w", it.Name, err)
		}
		third = namedItem + name
	default:
		third = nameless + uuid.NewString()
	}
	return scope + "." + producer + "." + third, nil
}

// readKey sets the fields of the item that its key has.
func readKey(key string, it *schema.Item) error {
	scope, rest, ok := strings.Cut(key, ".")
	producer, third, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return fmt.Errorf("the key %.300q is not a message key; message keys have three parts, as 'broker pending' shows them", key)
	}
	var err error
	it.Key = key
	if it.Scope, err = readScope(scope); err != nil {
		return fmt.Errorf("the key %.300q: %w", key, err)
	}
	if it.Producer, err = bus.ParseToken(producer); err != nil {
		return fmt.Errorf("the key %.300q: %w", key, err)
	}
	if err = readThird(third, it); err != nil {
		return fmt.Errorf("the key %.300q: %w", key, err)
	}
	return nil
}

func readScope(tok string) (s schema.Scope, err error) {
	if agent, ok := strings.CutPrefix(tok, agentScope); ok {
		s.Agent, err = bus.ParseToken(agent)
	} else if session, ok := strings.CutPrefix(tok, sessionScope); ok {
		s.Session, err = bus.ParseToken(session)
	} else if tok != allScope {
		err = fmt.Errorf("its first part is %q; use a-AGENT, s-SESSION or all", tok)
	}
	return s, err
}

func readThird(tok string, it *schema.Item) (err error) {
	it.Number, it.Name = 0, ""
	if name, ok := strings.CutPrefix(tok, namedItem); ok {
		it.Name, err = bus.ParseToken(name)
		return err
	}
	if strings.HasPrefix(tok, nameless) {
		_, err = bus.ParseToken(tok)
		return err
	}
	it.Number, err = strconv.ParseUint(tok, 10, 64)
	if err != nil || it.Number == 0 || strconv.FormatUint(it.Number, 10) != tok {
		return fmt.Errorf("its last part is %q; use a number from 1 on, or k-NAME", tok)
	}
	return nil
}

// markKey returns the key of the mark of the item's producer. It never equals the key of a cursor.
func markKey(key string) string {
	scope, rest, _ := strings.Cut(key, ".")
	producer, _, _ := strings.Cut(rest, ".")
	if agent, ok := strings.CutPrefix(scope, agentScope); ok {
		return agent + "." + producer
	}
	if session, ok := strings.CutPrefix(scope, sessionScope); ok {
		return "s." + session + "." + producer
	}
	return "all._." + producer
}
