package channel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema/match"
)

// A Reader takes texts out of a folder, for one agent's tool calls.
type Reader struct {
	dir    folder
	stderr io.Writer
	// step is told how far a hand-over is; only tests set it, to die there.
	step func(point string)

	mu   sync.Mutex // guards what follows
	last uint64     // the sequence of the last text that was told
	said string     // the last trouble, which is said once
}

// NewReader makes a reader of a folder, which need not be there yet. Stderr hears
// what people should know.
func NewReader(dir string, stderr io.Writer) *Reader {
	return &Reader{dir: folder(dir), stderr: stderr}
}

// Take is the text for a tool that has one of these names. done is called once:
// true takes the text away, false leaves it to a later call; nil: there is none.
// Nobody else takes it meanwhile.
func (r *Reader) Take(names ...string) (content string, done func(told bool)) {
	if !r.dir.has(FileName) {
		return "", nil
	}
	unlock, ok, err := lock(r.dir.path(readerLock))
	if err != nil {
		r.trouble(err)
	}
	if !ok {
		return "", nil // another one takes it now
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

// text is what lies there, if it is for a tool with one of these names and was
// not told before. The caller holds the lock.
func (r *Reader) text(names []string) (*Text, error) {
	t := &Text{}
	if err := readFile(r.dir.path(FileName), t); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if errors.Is(err, errGarbage) {
			err = errors.Join(err, r.dir.drop(FileName)) // else it would lie before all that comes
		}
		return nil, err
	}
	if t.expired(time.Now()) { // its writer, if there is one, puts it there again
		_, err := r.dir.move(FileName, withdrawnName)
		return nil, err
	}
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	if last > 0 && t.Sequence <= last {
		return nil, r.dir.drop(FileName) // it was told, and could not be taken away then
	}
	if t.Inject.Content == "" {
		return nil, r.dir.drop(FileName)
	}
	matcher := t.Matchers
	if matcher == "" {
		matcher = t.Matcher
	}
	m, err := match.Compile(matcher)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: tool_matcher: %w: %w", r.dir.path(FileName), err, errGarbage), r.dir.drop(FileName))
	}
	if !slices.ContainsFunc(names, m.Match) {
		return nil, nil
	}
	return t, nil
}

// taken takes away what was told. The caller holds the lock, so that it is that.
func (r *Reader) taken(t *Text) {
	r.mu.Lock()
	r.last = max(r.last, t.Sequence)
	r.mu.Unlock()
	now := &Text{}
	if err := readFile(r.dir.path(FileName), now); err != nil || now.Sequence != t.Sequence {
		return // its writer took it back meanwhile; it comes again
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
