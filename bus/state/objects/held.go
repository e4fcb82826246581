package objects

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

// maxInMemory is how large an object may be to be held in memory.
const maxInMemory = 1 << 20

// held is an object at hand: in memory, or in a temporary file without a name.
type held struct {
	digest string
	size   int64

	mu     sync.RWMutex // guards what follows against being closed while it is read
	memory []byte
	file   *os.File
	closed bool
}

var errPutAway = errors.New("the object was closed")

// digestOf is the name of what has that sum.
func digestOf(sum []byte) string { return "sha256-" + hex.EncodeToString(sum) }

// isDigest reports whether s is one.
func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256-")
	sum, err := hex.DecodeString(digits)
	// Written in one way only: an object has one name.
	return ok && err == nil && len(sum) == sha256.Size && digestOf(sum) == s
}

// hold takes what r has, at most so many bytes.
func hold(r io.Reader, most int64) (*held, error) {
	sum := sha256.New()
	r = io.TeeReader(io.LimitReader(r, most+1), sum)
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, maxInMemory+1))
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	h := &held{size: n, memory: b.Bytes()}
	if n > maxInMemory {
		if err := h.spill(r); err != nil {
			h.close()
			return nil, err
		}
	}
	if h.size > most {
		h.close()
		return nil, fmt.Errorf("%w: it has more than %d MiB; share less", ErrTooLarge, most>>20)
	}
	h.digest = digestOf(sum.Sum(nil))
	return h, nil
}

// spill puts what is in memory and the rest of r into a file.
func (h *held) spill(r io.Reader) error {
	f, err := os.CreateTemp("", "hookfabric-object-*")
	if err != nil {
		return fmt.Errorf("holding a large object: %w", err)
	}
	// Nobody needs its name, and so nobody has to clean up after a crash.
	_ = os.Remove(f.Name())
	h.file = f
	if _, err := f.Write(h.memory); err != nil {
		return fmt.Errorf("holding a large object: %w", err)
	}
	h.memory = nil
	n, err := io.Copy(f, r)
	if h.size += n; err != nil {
		return fmt.Errorf("holding a large object: %w", err)
	}
	return nil
}

// part is a copy of at most so many bytes from the offset on, which must not be
// behind the end.
func (h *held) part(offset, most int64) ([]byte, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return nil, errPutAway
	}
	data := make([]byte, min(most, h.size-offset))
	if h.file == nil {
		copy(data, h.memory[offset:])
		return data, nil
	}
	if _, err := h.file.ReadAt(data, offset); err != nil {
		return nil, err
	}
	return data, nil
}

func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil && !h.closed {
		_ = h.file.Close()
	}
	h.closed, h.memory = true, nil
}

// The bounds of what is kept at hand: how many objects, each of which takes at
// most [maxInMemory] of the memory, and how many bytes they have together.
const (
	maxShelf      = 32
	maxShelfBytes = 2 * MaxObject
)

// A shelf keeps the objects that were asked for last. The zero shelf is empty.
type shelf struct {
	mu sync.Mutex // guards held
	// held are the objects, the one that was asked for last at the end.
	held []*held
}

// get is the object if it is at hand; nil: it is not.
func (s *shelf) get(digest string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.held, func(h *held) bool { return h.digest == digest })
	if i < 0 {
		return nil
	}
	h := s.held[i]
	s.held = append(slices.Delete(s.held, i, i+1), h)
	return h
}

// put keeps an object at hand, and puts others away that do not fit any more.
func (s *shelf) put(h *held) {
	s.mu.Lock()
	s.held = append(s.held, h)
	var bytes int64
	keep := len(s.held)
	for keep > 0 && len(s.held)-keep < maxShelf && bytes+s.held[keep-1].size <= maxShelfBytes {
		keep--
		bytes += s.held[keep].size
	}
	away := slices.Clone(s.held[:keep])
	s.held = slices.Delete(s.held, 0, keep)
	s.mu.Unlock()
	for _, h := range away {
		h.close()
	}
}

func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		h.close()
	}
	s.held = nil
}
