package channel

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema/match"
)

// A Reader takes texts out of a folder, for the tool calls of one agent.
type Reader struct {
	dir    folder
	stderr io.Writer
	// step receives each point of a delivery. Only tests set it, to die there.
	step func(point string)

	mu   sync.Mutex // guards what follows
	last uint64     // the sequence of the last delivered text
	said string     // the last reported error, to report it once only
}

// NewReader returns a reader of a folder, which need not exist yet.
func NewReader(dir string, stderr io.Writer) *Reader {
	return &Reader{dir: folder(dir), stderr: stderr}
}

// Take returns and locks the text for a tool that has one of these names. The caller must call done once, if
// it is not nil: true removes the text, false leaves it for a later call.
func (r *Reader) Take(names ...string) (content string, done func(told bool)) {
	if !r.dir.has(FileName) {
		return "", nil
	}
	unlock, ok, err := r.dir.lock(readerLock)
	if err != nil {
		r.trouble(err)
	}
	if !ok {
		return "", nil // another reader is delivering it
	}
	t, err := r.text(names)
	if err != nil {
		r.trouble(err)
	}
	if t == nil {
		unlock()
		return "", nil
	}
	return t.Inject.Content, func(told bool) {
		defer unlock()
		r.at("told")
		if told {
			r.taken(t)
		}
	}
}

// text returns the current text if it is for a tool with one of these names and not delivered yet.
func (r *Reader) text(names []string) (*Text, error) {
	t := &Text{}
	if err := readFile(r.dir.path(FileName), t); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if errors.Is(err, errGarbage) {
			err = errors.Join(err, r.dir.drop(FileName)) // otherwise it would block all later texts
		}
		return nil, err
	}
	if t.expired(time.Now()) { // if its writer is alive, it puts the text there again
		_, err := r.dir.move(FileName, withdrawnName)
		return nil, err
	}
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	if last > 0 && t.Sequence <= last || t.Inject.Content == "" {
		return nil, r.dir.drop(FileName) // this reader delivered it, and failed to remove it
	}
	m, err := match.Compile(cmp.Or(t.Matchers, t.Matcher))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: tool_matcher: %w: %w", r.dir.path(FileName), err, errGarbage), r.dir.drop(FileName))
	}
	if !slices.ContainsFunc(names, m.Match) {
		return nil, nil
	}
	return t, nil
}

// taken removes the text that the reader delivered. The caller holds the lock.
func (r *Reader) taken(t *Text) {
	r.mu.Lock()
	r.last = max(r.last, t.Sequence)
	r.mu.Unlock()
	now := &Text{}
	if err := readFile(r.dir.path(FileName), now); err != nil || now.Sequence != t.Sequence {
		return // its writer withdrew it, and delivers it again
	}
	if err := r.dir.drop(FileName); err != nil {
		r.trouble(err)
	}
	r.at("taken")
}

func (r *Reader) at(point string) {
	if r.step != nil {
		r.step(point)
	}
}

func (r *Reader) trouble(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := err.Error(); text != r.said {
		r.said = text
		fmt.Fprintf(r.stderr, "agentshim: delivering the text in the folder %s: %v\n", r.dir, err)
	}
}
