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

// maxInMemory is the largest object that is held in memory, in bytes.
const maxInMemory = 1 << 20

// held is a loaded object: in memory, or in an unlinked temporary file.
type held struct {
	digest string
	size   int64

	mu     sync.RWMutex // guards the following fields against a close during a read
	memory []byte
	file   *os.File
	closed bool
}

var errClosed = errors.New("the object was closed")

// digestOf returns the name of an object with that SHA-256.
func digestOf(sum []byte) string { return "sha256-" + hex.EncodeToString(sum) }

// isDigest reports whether s is the name of an object.
func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256-")
	sum, err := hex.DecodeString(digits)
	// Only one spelling is valid, so that an object has one name.
	return ok && err == nil && len(sum) == sha256.Size && digestOf(sum) == s
}

// hold reads r, which may have at most so many bytes.
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

// spill moves the memory and the rest of r into a file.
func (h *held) spill(r io.Reader) error {
	f, err := os.CreateTemp("", "hookfabric-object-*")
	if err != nil {
		return fmt.Errorf("holding a large object: %w", err)
	}
	// The file needs no name, and unlinked it is removed by a crash, too.
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

// part returns a copy of at most most bytes from the offset on, which must not be beyond the end.
func (h *held) part(offset, most int64) ([]byte, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return nil, errClosed
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

// The limits of the cache: the number of objects, of which each takes at most [maxInMemory] of memory, and their bytes.
const (
	maxCached      = 32
	maxCachedBytes = 2 * MaxObject
)

// A cache holds the objects that were read last. The zero cache is empty.
type cache struct {
	mu sync.Mutex // guards held
	// held are the objects, the most recently used one last.
	held []*held
}

// get returns a cached object, or nil.
func (c *cache) get(digest string) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.held, func(h *held) bool { return h.digest == digest })
	if i < 0 {
		return nil
	}
	h := c.held[i]
	c.held = append(slices.Delete(c.held, i, i+1), h)
	return h
}

// put adds an object, and closes others that exceed the limits.
func (c *cache) put(h *held) {
	c.mu.Lock()
	c.held = append(c.held, h)
	var bytes int64
	keep := len(c.held)
	for keep > 0 && len(c.held)-keep < maxCached && bytes+c.held[keep-1].size <= maxCachedBytes {
		keep--
		bytes += c.held[keep].size
	}
	evicted := slices.Clone(c.held[:keep])
	c.held = slices.Delete(c.held, 0, keep)
	c.mu.Unlock()
	for _, h := range evicted {
		h.close()
	}
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.held {
		h.close()
	}
	c.held = nil
}
