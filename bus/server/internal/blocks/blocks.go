// Package blocks reads the files of JetStream streams before a server does. The server truncates a damaged
// block at the first unreadable record and continues without the rest. A broker must know that before it
// starts the server.
//
// The format is documented only by the source of nats-server (filestore.go). The tests compare this package
// with files of the linked release.
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
	// withHeaders is set in the length of a record with headers. erased and tombstone are set in
	// the sequence of a deleted message.
	withHeaders       = 1 << 31
	erased, tombstone = 1 << 63, 1 << 62
)

// A Stream is the content of a stream's folder.
type Stream struct {
	// Last is the last readable sequence, of a message or of the mark of a deleted one.
	Last uint64
	// Bad is the first unreadable record; nil: none.
	Bad *Bad
	// Files has the size of each block. Index identifies the state of the server's index; empty:
	// there is no index.
	Files map[string]int64
	Index string
}

// Bad is an unreadable record. The rest of its block is unreadable, too.
type Bad struct {
	File   string
	Offset int
	// After is the last sequence before it.
	After uint64
	// Tail: it is in the last block.
	Tail bool
}

func (b *Bad) String() string {
	return fmt.Sprintf("%s cannot be read from byte %d on, after message %d", b.File, b.Offset, b.After)
}

// Read reads all blocks in the folder of the stream.
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

// List is [Read] without reading the blocks.
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

// Purging reports whether the server was emptying the stream when it ended, and will finish that. Missing
// blocks are then no loss.
func Purging(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "__new_msgs__"))
	return err == nil
}

// number returns the number of a block's file; -1: it is not a block.
func number(file string) int {
	text, is := strings.CutSuffix(file, suffix)
	n, err := strconv.ParseUint(text, 10, 31)
	if !is || err != nil {
		return -1
	}
	return int(n)
}

// index returns the checksum at the end of the server's index.
func index(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return hex.EncodeToString(data[max(len(data)-sumSize, 0):]), err
}

// read returns the last sequence in a block, and the offset of the first unreadable record; -1: none.
func read(data []byte, stream string, block int) (last uint64, bad int) {
	data, ok := unpacked(data)
	if !ok {
		return 0, 0
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, block))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return 0, 0 // not possible with a key of this size
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

// unpacked returns a block without the compression of earlier releases; false: it is damaged.
func unpacked(data []byte) ([]byte, bool) {
	const algorithm = 1
	if len(data) < 5+sumSize || !bytes.HasPrefix(data, []byte{'c', 'm', 'p', algorithm}) {
		return data, true
	}
	_, n := binary.Uvarint(data[4:])
	if n <= 0 || 4+n > len(data)-sumSize {
		return nil, false
	}
	packed, sum := data[4+n:len(data)-sumSize], data[len(data)-sumSize:] // the checksum is not compressed
	whole, err := io.ReadAll(s2.NewReader(bytes.NewReader(packed)))
	return append(whole, sum...), err == nil
}
