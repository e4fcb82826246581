package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// An Item is one injection, named by the producer that counts it.
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
	// At is the time of the entry, in nanoseconds of this machine's clock.
	At int64 `json:"at"`
	// By is the name of the process that wrote it, a new one after each start.
	By string `json:"by"`

	// Receipt is an answer to a producer.
	Receipt *Receipt `json:"receipt,omitzero"`
	// Handed has the items that a shim handed over, written before it acknowledged them.
	Handed *Handed `json:"handed,omitzero"`
	// Attempt is a request of a producer that stays at one broker.
	Attempt *Attempt `json:"attempt,omitzero"`
	// Acked are events whose acknowledgement is confirmed to a shim.
	Acked []string `json:"acked,omitzero"`
}

// A Receipt is the fabric's answer to one item.
type Receipt struct {
	Item Item `json:"item"`
	// Sequence is the item's place in the queue; 0: the fabric no longer knows it.
	Sequence uint64 `json:"sequence,omitzero"`
	// Duplicate means that the fabric had the item before.
	Duplicate bool `json:"duplicate,omitzero"`
	// Refused is why the fabric rejects the item permanently; empty: it accepted the item.
	Refused string `json:"refused,omitzero"`
}

// An Attempt is one request to put a message into the queue through one broker.
type Attempt struct {
	// Broker is the number of the broker, counted from 1.
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
	// Items are the items in the texts, in their order.
	Items []Item `json:"items"`
}

// A Journal is an append-only log. Its entries survive a kill -9 of the writer without a
// sync.
type Journal struct {
	by   string
	find finder

	mu   sync.Mutex // guards file, so that entries do not mix
	file *os.File
}

// OpenJournal opens the log in file for the process by. It ends a line that a killed
// process left incomplete.
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

// Write appends an entry. The entry survives a kill when Write returns.
func (j *Journal) Write(e Entry) error {
	e.At, e.By = time.Now().UnixNano(), cmp.Or(e.By, j.by)
	return j.Append(e)
}

// Hand logs the items of a verdict for an agent, if it has any. by is the process that will
// acknowledge them; empty: this one.
func (j *Journal) Hand(by, agent string, v *schema.Verdict) error {
	items := j.find.items(v.Injections)
	if len(items) == 0 {
		return nil
	}
	return j.Write(Entry{By: by, Handed: &Handed{Agent: agent, Event: v.EventID, Items: items}})
}

// Append appends a line of another type, for other logs.
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

// Close closes the log.
func (j *Journal) Close() error { return j.file.Close() }

// A Reader follows a log that other processes write.
type Reader struct {
	file *os.File
	rest []byte
	// Torn counts incomplete lines of killed processes. Their content does not count: a
	// process acts on an entry only after it has written the line.
	Torn int
}

// OpenReader opens the log in file at its beginning. It creates the file if needed.
func OpenReader(file string) (*Reader, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return &Reader{file: f}, nil
}

// Next calls take for each complete entry since the last call.
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

// Lines is like Next, for logs with other entries. A line that take rejects counts as torn.
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

// Close closes the log.
func (r *Reader) Close() error { return r.file.Close() }

// A Recipient is one agent that receives verdicts. It is safe for concurrent use.
type Recipient struct {
	agent string
	c     *client.Client
	log   *Journal

	mu sync.Mutex // guards unsure
	// unsure are the events whose acknowledgement is not confirmed.
	unsure []string
}

// NewRecipient returns the recipient for an agent that asks through c. It logs handovers to
// log.
func NewRecipient(agent string, c *client.Client, log *Journal) *Recipient {
	return &Recipient{agent: agent, c: c, log: log}
}

// Take logs the items of a verdict, and only then acknowledges them to the fabric. It
// returns an error if it cannot write the log.
func (r *Recipient) Take(v *schema.Verdict) error {
	if err := r.log.Hand("", r.agent, v); err != nil {
		return err
	}
	if _, brought := r.c.Brought(v.EventID); !brought {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Handed(v.EventID)
	r.unsure = append(r.unsure, v.EventID)
	return nil
}

// Acknowledged logs the events whose acknowledgement has arrived since the last call.
func (r *Recipient) Acknowledged() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsure) == 0 {
		return nil
	}
	noted := r.c.Noted(r.agent).Events
	var sure []string
	r.unsure = slices.DeleteFunc(r.unsure, func(event string) bool {
		if slices.Contains(noted, event) {
			return false
		}
		sure = append(sure, event)
		return true
	})
	if len(sure) == 0 {
		return nil
	}
	return r.log.Write(Entry{Acked: sure})
}
