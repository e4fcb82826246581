package blocks

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/minio/highwayhash"
)

// record is one of a stream "s", in its first block.
func record(sequence uint64, subject, headers, message string) []byte {
	var head [headSize]byte
	b := head[:]
	size := headSize + len(subject) + len(message) + sumSize
	binary.LittleEndian.PutUint64(b[4:], sequence)
	binary.LittleEndian.PutUint16(b[20:], uint16(len(subject)))
	b = append(b, subject...)
	if headers != "" {
		size += 4 + len(headers)
		binary.LittleEndian.PutUint32(b, uint32(size)|withHeaders)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(headers)))
	} else {
		binary.LittleEndian.PutUint32(b, uint32(size))
	}
	key := sha256.Sum256([]byte("s-1"))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		panic(err)
	}
	for _, part := range []string{string(b[4:20]), subject, headers, message} {
		_, _ = sum.Write([]byte(part))
	}
	return sum.Sum(append(b, headers+message...))
}

func TestABlockIsReadUpToTheFirstUnreadableRecord(t *testing.T) {
	first, second := record(7, "a.b", "", "message"), record(9, "a", "NATS/1.0\r\n\r\n", "")
	gone := record(8|tombstone, "", "", "")
	whole := append(append(append([]byte{}, first...), second...), gone...)
	for name, c := range map[string]struct {
		data []byte
		last uint64
		bad  int
	}{
		"nothing":                   {nil, 0, -1},
		"a message":                 {first, 7, -1},
		"all":                       {whole, 9, -1},
		"what was deleted counts":   {gone, 8, -1},
		"a message that was erased": {record(5|erased, "", "", "random"), 5, -1},
		"half a record":             {whole[:len(first)+3], 7, len(first)},
		"zeros":                     {append(append([]byte{}, first...), make([]byte, 64)...), 7, len(first)},
	} {
		if last, bad := read(c.data, "s", 1); last != c.last || bad != c.bad {
			t.Errorf("%s: the last one is %d, and byte %d is bad; want %d and %d", name, last, bad, c.last, c.bad)
		}
	}
	if _, bad := read(first, "s", 2); bad != 0 {
		t.Error("a block is taken for another one")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(record(1, "a", "", "b"))
	f.Add(append(record(1, "a", "h", "b"), 1, 2, 3))
	f.Add([]byte("cmp\x01\x10junk that is packed"))
	f.Add([]byte("cmp\x01\xbc00000000")) // its size would reach into the checksum
	f.Fuzz(func(t *testing.T, data []byte) {
		_, bad := read(data, "s", 1)
		packed := len(data) > 0 && data[0] == 'c'
		if bad > 0 && bad >= len(data) && !packed {
			t.Errorf("byte %d of %d is bad", bad, len(data))
		}
		if bad < 0 && !packed {
			if _, again := read(append(slices.Clip(data), 0), "s", 1); again != len(data) {
				t.Errorf("a byte too many is seen at %d", again)
			}
		}
	})
}
