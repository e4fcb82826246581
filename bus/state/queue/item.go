package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// The sizes of items.
const (
	// MaxContent is the longest text in an item, in bytes; a longer one goes into the object store.
	MaxContent = 256 << 10
	// MaxValue is the largest item as JSON.
	MaxValue = 1 << 20
	// maxSource is the longest source.
	maxSource = 64
)

// invalid returns the error of an item that cannot be accepted.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// prepare returns the item with its key, and its value, or what is wrong with it.
func prepare(given *schema.Item) (it *schema.Item, value []byte, err error) {
	own := *given
	it = &own
	if it.Key, err = keyOf(it); err != nil {
		return nil, nil, invalid("%w", err)
	}
	if err := errors.Join(checkWords(it), checkContent(it), setExpiry(it)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if value, err = schema.Marshal(it); err != nil {
		return nil, nil, invalid("%w", err)
	}
	if len(value) > MaxValue {
		return nil, nil, invalid("it takes %d KiB, and at most %d KiB are possible; put the text into the object store and name the object", len(value)>>10, MaxValue>>10)
	}
	return it, value, nil
}

func checkWords(it *schema.Item) error {
	var errs []error
	if !it.Strategy.Known() {
		errs = append(errs, fmt.Errorf("the strategy is %.64q; write %s or %s", it.Strategy, schema.ToolResult, schema.UserMessage))
	}
	if !isWord(it.Source) {
		errs = append(errs, fmt.Errorf("the source is %.80q; write 1 to %d letters, digits, _ or -", it.Source, maxSource))
	}
	if _, err := match.Compile(it.Matcher); err != nil {
		errs = append(errs, fmt.Errorf("the matcher: %w", err))
	}
	return errors.Join(errs...)
}

func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxSource
}

func checkContent(it *schema.Item) error {
	forms := 0
	for _, there := range []bool{it.Answer != nil, it.Subagent != nil, it.Background != nil, it.TimeLimit != nil} {
		if there {
			forms++
		}
	}
	switch {
	case forms > 1:
		return errors.New("it has more than one structured form; send each as an item of its own")
	case forms == 0 && it.Content == "" && it.Object == nil:
		return errors.New("it has no content; write a text")
	case len(it.Content) > MaxContent:
		return fmt.Errorf("its text has %d KiB, and at most %d KiB are possible; put it into the object store and name the object", len(it.Content)>>10, MaxContent>>10)
	}
	return nil
}

// setExpiry checks the expiry, and sets its default.
func setExpiry(it *schema.Item) error {
	expiry, forMany := time.Duration(it.Expiry), it.Scope.Agent == ""
	object := it.Object != nil || it.Answer != nil && it.Answer.Snapshot != nil
	switch {
	case expiry < 0:
		return fmt.Errorf("it may wait for %v; write how long, such as 2h", expiry)
	case (forMany || object) && expiry > MaxExpiry:
		return fmt.Errorf("it may wait for %v; what is for more than one agent, or lies in the object store, may wait for %v at most", expiry, MaxExpiry)
	case expiry == 0 && object && !forMany:
		it.Expiry = schema.Duration(MaxExpiry)
	case expiry == 0 && forMany:
		it.Expiry = schema.Duration(DefaultExpiry)
	}
	return nil
}

// decode decodes an item of the bucket.
func decode(e kv.Entry) (*schema.Item, error) {
	it := new(schema.Item)
	if err := schema.Unmarshal(e.Value, it); err != nil {
		return nil, fmt.Errorf("the item %.300s cannot be read; was it written by a newer release? %w", e.Key, err)
	}
	if err := readKey(e.Key, it); err != nil {
		return nil, err
	}
	it.Sequence, it.Accepted = e.Revision, e.Created
	return it, nil
}
