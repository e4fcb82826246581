package record

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"

	"github.com/hookfabric/hookfabric/schema"
)

// The bounds of a message with records, packed as they are. One record may be as large
// as a message: together they stay below what NATS servers take unless told otherwise,
// 1 MiB.
const (
	maxLines  = 1024
	maxBytes  = 256 << 10
	maxRecord = 256 << 10
	// maxPlain is how much the lines of a message may be that one packs well.
	maxPlain = 2 << 20
	// maxBlock is about how much waits to be packed, in Snappy's format at most.
	maxBlock = 64 << 10
)

// page is a message that is being filled. Its lines are packed block by block, as they
// come: what a call leaves is mostly what the calls before it left, and each byte that
// is not there costs nobody anything on its way to the disk.
type page struct {
	packed sink
	packer *s2.Writer
	lines  int
	plain  int // bytes of the lines as they are
}

// sink takes what was packed. It is never full.
type sink []byte

func (s *sink) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}

func newPage() *page {
	p := new(page)
	p.packer = s2.NewWriter(&p.packed, s2.WriterConcurrency(1), s2.WriterSnappyCompat())
	return p
}

// takes reports whether a line of so many bytes fits, where a message may have at most
// so many packed ones. The first always does.
func (p *page) takes(n, most int) bool {
	return p.lines == 0 || p.lines < maxLines && p.plain+n <= maxPlain && len(p.packed)+min(p.plain, maxBlock)+n <= most
}

// add adds a line, which ends with a line feed.
func (p *page) add(line []byte) {
	_, _ = p.packer.Write(line) // into memory
	p.lines++
	p.plain += len(line)
}

// tear returns what was packed, and begins anew in room.
func (p *page) tear(room []byte) []byte {
	_ = p.packer.Close() // into memory
	data := p.packed
	p.packed, p.lines, p.plain = room, 0, 0
	p.packer.Reset(&p.packed)
	return data
}

// unpacked are the lines of a message, with their line feeds. Messages of brokers that
// did not pack them are what they are.
func unpacked(encoding string, data []byte) ([]byte, error) {
	switch encoding {
	case "":
		return data, nil
	case schema.SnappyFramed:
	default:
		return nil, fmt.Errorf("it is packed as %q, which this version cannot read; use the version of the broker", encoding)
	}
	const most = maxPlain + maxRecord
	blocks := s2.NewReader(bytes.NewReader(data), s2.ReaderMaxBlockSize(maxBlock))
	lines, err := io.ReadAll(io.LimitReader(blocks, most+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	if len(lines) > most {
		return nil, fmt.Errorf("it holds more than the %d bytes that a message may", most)
	}
	return lines, nil
}
