// Package blocks reads what JetStream's file store keeps of a stream on disk, before a
// server does. The server cuts a damaged block off at the first record that it cannot
// read, and goes on without the rest: that has to be known before it starts.
//
// The format is nats-server's own and documented only by its source (filestore.go). The
// tests hold this package to what the linked release writes.
package blocks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"
	"github.com/minio/highwayhash"
)

const (
	folder    = "msgs"
	indexFile = "index.db"
	suffix    = ".blk"

	// A record is its length, sequence, time and the length of its subject, then subject,
	// headers (after their length, if it has any) and message, and at the end a checksum.
	headSize = 22
	sumSize  = 8
	// withHeaders is set in the length of a record that has headers. erased and tombstone
	// are set in the sequence of one that is no message any more.
	withHeaders       = 1 << 31
	erased, tombstone = 1 << 63, 1 << 62
)

// A Stream is what a stream's folder holds.
type Stream struct {
	// Last is the last sequence that can be read, of a message or of a mark of a deleted one.
	Last uint64
	// Bad is the first record that cannot be read; nil: all can.
	Bad *Bad
	// Files has the size of every block, and Index tells one state of the server's index
	// from another; empty: there is none.
	Files map[string]int64
	Index string
}

// Bad is a record that cannot be read, and with it what follows in its block.
type Bad struct {
	File   string
	Offset int
	// After is the last sequence before it.
	After uint64
	// Tail: no block follows.
	Tail bool
}

func (b *Bad) String() string {
	return fmt.Sprintf("%s cannot be read from byte %d on, after message %d", b.File, b.Offset, b.After)
}

// Read reads all blocks in the folder of the stream of that name.
func Read(dir, name string) (Stream, error) {
	s, err := List(dir)
	if err != nil {
		return s, err
	}
	files := make([]string, 0, len(s.Files))
	for file := range s.Files {
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b string) int { return number(a) - number(b) })
	for i, file := range files {
		path := filepath.Join(dir, folder, file)
		data, err := os.ReadFile(path)
		if err != nil {
			return s, err
		}
		last, at := read(data, name, number(file))
		s.Last = max(s.Last, last)
		if at >= 0 && s.Bad == nil {
			s.Bad = &Bad{File: path, Offset: at, After: s.Last, Tail: i == len(files)-1}
		}
	}
	return s, nil
}

// List is [Read] without a look into the blocks.
func List(dir string) (Stream, error) {
	s := Stream{Files: make(map[string]int64)}
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if number(e.Name()) < 0 {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return s, err
		}
		s.Files[e.Name()] = info.Size()
	}
	s.Index, err = index(filepath.Join(dir, folder, indexFile))
	return s, err
}

// Purging reports whether the server was emptying the stream when it ended, and will
// finish that: blocks may be gone then that are no loss.
func Purging(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "__new_msgs__"))
	return err == nil
}

// number is the number of a block's file; -1: it is none.
func number(file string) int {
	text, is := strings.CutSuffix(file, suffix)
	n, err := strconv.ParseUint(text, 10, 31)
	if !is || err != nil {
		return -1
	}
	return int(n)
}

// index is the checksum at the end of the server's index.
func index(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return hex.EncodeToString(data[max(len(data)-sumSize, 0):]), err
}

// read returns the last sequence in a block, and where the first record begins that cannot
// be read; -1: all can.
func read(data []byte, stream string, block int) (last uint64, bad int) {
	data, ok := unpacked(data)
	if !ok {
		return 0, 0
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, block))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return 0, 0 // the key has the size that it takes
	}
	for at := 0; at < len(data); {
		rest := data[at:]
		if len(rest) < headSize+sumSize {
			return last, at
		}
		size := binary.LittleEndian.Uint32(rest)
		subject := int(binary.LittleEndian.Uint16(rest[20:]))
		text := headSize + subject
		if size&withHeaders != 0 {
			text += 4
		}
		n := int(size &^ withHeaders)
		if n > len(rest) || text > n-sumSize {
			return last, at
		}
		sum.Reset()
		_, _ = sum.Write(rest[4:20])
		_, _ = sum.Write(rest[headSize : headSize+subject])
		_, _ = sum.Write(rest[text : n-sumSize])
		if !bytes.Equal(sum.Sum(nil), rest[n-sumSize:n]) {
			return last, at
		}
		last = max(last, binary.LittleEndian.Uint64(rest[4:])&^(erased|tombstone))
		at += n
	}
	return last, -1
}

// unpacked is a block as it was before the server packed it, which it did for an earlier
// release; false: it cannot be unpacked.
func unpacked(data []byte) ([]byte, bool) {
	const algorithm = 1
	if len(data) < 5+sumSize || !bytes.HasPrefix(data, []byte{'c', 'm', 'p', algorithm}) {
		return data, true
	}
	_, n := binary.Uvarint(data[4:])
	if n <= 0 || 4+n > len(data)-sumSize {
		return nil, false
	}
	packed, sum := data[4+n:len(data)-sumSize], data[len(data)-sumSize:] // which is not packed
	whole, err := io.ReadAll(s2.NewReader(bytes.NewReader(packed)))
	return append(whole, sum...), err == nil
}
