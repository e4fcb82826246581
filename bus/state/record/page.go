package record

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"

	"github.com/hookfabric/hookfabric/schema"
)

// The limits of a message with records. A single record may be as large as a message. The sum stays below the default limit of
// NATS servers, 1 MiB.
const (
	maxLines  = 1024
	maxBytes  = 256 << 10
	maxRecord = 256 << 10
	// maxPlain bounds the uncompressed lines of a message.
	maxPlain = 2 << 20
	// maxBlock is about how many bytes wait for compression, the maximum of Snappy.
	maxBlock = 64 << 10
)

// page is a message that is being filled. Lines are compressed block by block: most of a record repeats earlier ones, and
// smaller messages cost less on the way to the disk.
type page struct {
	packed sink
	packer *s2.Writer
	lines  int
	plain  int // uncompressed bytes of the lines
}

// sink collects compressed data in memory.
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

// takes reports whether a line of n bytes fits, with at most most compressed bytes in the message. The first line always fits.
func (p *page) takes(n, most int) bool {
	return p.lines == 0 || p.lines < maxLines && p.plain+n <= maxPlain && len(p.packed)+min(p.plain, maxBlock)+n <= most
}

// add adds a line, which ends with a line feed.
func (p *page) add(line []byte) {
	_, _ = p.packer.Write(line) // memory does not fail
	p.lines++
	p.plain += len(line)
}

// tear returns the message and begins the next one in buf.
func (p *page) tear(buf []byte) []byte {
	_ = p.packer.Close() // memory does not fail
	data := p.packed
	p.packed, p.lines, p.plain = buf, 0, 0
	p.packer.Reset(&p.packed)
	return data
}

// unpacked returns the lines of a message. Messages of earlier releases are not compressed.
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
