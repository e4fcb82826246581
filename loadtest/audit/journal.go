package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// An Item is one injection, named by who counts it.
type Item struct {
	Agent    string `json:"agent"`
	Source   string `json:"source"`
	Producer string `json:"producer"`
	Number   uint64 `json:"number"`
}

func (i Item) String() string {
	return fmt.Sprintf("%s of %s for %s from %s", ordinal(i.Number), i.Source, i.Agent, i.Producer)
}

func ordinal(n uint64) string { return fmt.Sprintf("number %d", n) }

// An Entry is a line of a log. Each has one kind of content.
type Entry struct {
	// At is when it was written, in nanoseconds of this machine's clock.
	At int64 `json:"at"`
	// By is the process that wrote it, a new name after each start.
	By string `json:"by"`

	// Receipt is an answer to a producer.
	Receipt *Receipt `json:"receipt,omitzero"`
	// Handed is what a shim handed over, before it acknowledged it.
	Handed *Handed `json:"handed,omitzero"`
	// Attempt is a request of a producer that stays at one broker.
	Attempt *Attempt `json:"attempt,omitzero"`
	// Acked are events of which a shim knows that they were acknowledged.
	Acked []string `json:"acked,omitzero"`
}

// A Receipt is what the fabric said to one item.
type Receipt struct {
	Item Item `json:"item"`
	// Sequence is the item's place in the queue; 0: the fabric does not know it any more.
	Sequence uint64 `json:"sequence,omitzero"`
	// Duplicate: it said that it had it before.
	Duplicate bool `json:"duplicate,omitzero"`
	// Tries is how often it was sent until this came.
	Tries int `json:"tries,omitzero"`
	// Refused is why the fabric will never take it; empty: it did.
	Refused string `json:"refused,omitzero"`
}

// An Attempt is one request to put a message into the queue through one broker.
type Attempt struct {
	// Broker is its number, counted from 1.
	Broker   int       `json:"broker"`
	Asked    time.Time `json:"asked"`
	Answered time.Time `json:"answered"`
	Accepted bool      `json:"accepted,omitzero"`
	// Lost means that no answer came.
	Lost bool `json:"lost,omitzero"`
}

// Handed is one verdict's injections.
type Handed struct {
	Agent string `json:"agent"`
	Event string `json:"event"`
	// Items are those that the texts name, in their order.
	Items []Item `json:"items"`
}

// A Journal is a log that is only ever appended to. What was written is there
// after a kill -9 of who wrote it, without any syncing.
type Journal struct {
	by   string
	find finder

	mu   sync.Mutex // guards file, so that entries do not mix
	file *os.File
}

// OpenJournal goes on with the log in file, as the process by. What an earlier
// process was killed in the middle of is ended there.
func OpenJournal(file, by string) (*Journal, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	if _, err := f.WriteString("\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("writing to a log: %w", err), f.Close())
	}
	return &Journal{by: by, find: newFinder(), file: f}, nil
}

// Write appends an entry. It is there for good when Write returns.
func (j *Journal) Write(e Entry) error {
	e.At, e.By = time.Now().UnixNano(), cmp.Or(e.By, j.by)
	return j.Append(e)
}

// Hand writes down what a verdict brings to an agent, if it brings anything. By is the process
// that will acknowledge it; empty: this one.
func (j *Journal) Hand(by, agent string, v *schema.Verdict) error {
	items := j.find.items(v.Injections)
	if len(items) == 0 {
		return nil
	}
	return j.Write(Entry{By: by, Handed: &Handed{Agent: agent, Event: v.EventID, Items: items}})
}

// Append appends a line that is no entry, for logs of something else.
func (j *Journal) Append(v any) error {
	line, err := schema.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding an entry of a log: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing to a log: %w", err)
	}
	return nil
}

// Close ends writing.
func (j *Journal) Close() error { return j.file.Close() }

// A Reader follows a log that others write.
type Reader struct {
	file *os.File
	rest []byte
	// Torn counts lines that somebody was killed in the middle of. Nothing of
	// them counts: whoever wrote one had not come to acting on it.
	Torn int
}

// OpenReader reads the log in file from its beginning; it need not be there yet.
func OpenReader(file string) (*Reader, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return &Reader{file: f}, nil
}

// Next hands on the entries that were written since it was last called, as far
// as their lines have ended.
func (r *Reader) Next(take func(Entry)) error {
	return r.Lines(func(line []byte) error {
		var e Entry
		if err := schema.Unmarshal(line, &e); err != nil {
			return err
		}
		take(e)
		return nil
	})
}

// Lines is Next for logs of something else; a line that take cannot read is torn.
func (r *Reader) Lines(take func(line []byte) error) error {
	more, err := io.ReadAll(r.file)
	if err != nil {
		return fmt.Errorf("reading a log: %w", err)
	}
	r.rest = append(r.rest, more...)
	for {
		line, rest, ended := bytes.Cut(r.rest, []byte("\n"))
		if !ended {
			return nil
		}
		r.rest = rest
		if len(line) > 0 && take(line) != nil {
			r.Torn++
		}
	}
}

// Close ends reading.
func (r *Reader) Close() error { return r.file.Close() }
