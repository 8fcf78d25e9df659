package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// The limits of a fetch protect memory from a small pack that grows by compression or deltas. The trees of a tip have a few
// megabytes, all blobs more.
const (
	maxPackBytes   = 512 << 20
	maxPackObjects = 4 << 20
	maxPackMemory  = 1 << 30
	maxDeltaDepth  = 4095 // git's own limit
)

// packReader unpacks a pack into memory. go-git's parser reserves up to 1 GiB because of a header.
type packReader struct {
	hasher  *Hasher
	objects map[Hash]RawObject
	offsets map[int64]Hash
	deltas  []delta
	left    int64 // bytes that may be unpacked
}

type delta struct {
	at         int64
	baseOffset int64 // of an offset delta
	baseID     Hash
	content    []byte
}

// ReadPack unpacks r into objects, which may have bases of deltas.
func ReadPack(r io.Reader, objects map[Hash]RawObject) error {
	return readPackWithin(maxPackMemory, r, objects)
}

func readPackWithin(limit int64, r io.Reader, objects map[Hash]RawObject) error {
	scanner := packfile.NewScanner(r)
	_, count, err := scanner.Header()
	if err != nil {
		return fmt.Errorf("the pack cannot be read: %w", err)
	}
	if count > maxPackObjects {
		return fmt.Errorf("%w: the pack announces %d objects", ErrTooLarge, count)
	}
	reader := &packReader{hasher: NewHasher(), objects: objects, offsets: map[int64]Hash{}, left: limit}
	for range count {
		if err := reader.next(scanner); err != nil {
			return fmt.Errorf("the pack cannot be read: %w", err)
		}
	}
	if _, err := scanner.Checksum(); err != nil {
		return fmt.Errorf("the pack cannot be read: %w", err)
	}
	return reader.resolve()
}

func (p *packReader) next(scanner *packfile.Scanner) error {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return err
	}
	if err := p.reserve(header.Length); err != nil {
		return err
	}
	var content bytes.Buffer
	content.Grow(int(min(header.Length, 64<<10)))
	written, _, err := scanner.NextObject(&content)
	if err != nil {
		return err
	}
	if written != header.Length {
		return errors.New("an object is shorter than it says")
	}
	switch header.Type {
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		p.deltas = append(p.deltas, delta{
			at: header.Offset, baseOffset: header.OffsetReference, baseID: header.Reference, content: content.Bytes(),
		})
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		p.add(header.Offset, RawObject{Kind: header.Type, Content: content.Bytes()})
	default:
		return fmt.Errorf("an object is of the unknown type %d", header.Type)
	}
	return nil
}

func (p *packReader) reserve(size int64) error {
	if size < 0 || size > p.left {
		return fmt.Errorf("%w: the pack unpacks to more than is accepted", ErrTooLarge)
	}
	p.left -= size
	return nil
}

func (p *packReader) add(at int64, o RawObject) {
	id := p.hasher.object(o.Kind, o.Content)
	p.objects[id] = o
	p.offsets[at] = id
}

// resolve applies the deltas. Most bases come first, so two passes are enough.
func (p *packReader) resolve() error {
	pending := p.deltas
	for depth := 0; len(pending) > 0; depth++ {
		var left []delta
		for _, d := range pending {
			baseID := d.baseID
			if d.baseOffset != 0 {
				baseID = p.offsets[d.baseOffset]
			}
			base, ok := p.objects[baseID]
			if !ok {
				left = append(left, d)
				continue
			}
			if err := p.apply(d, base); err != nil {
				return err
			}
		}
		if len(left) == len(pending) || depth > maxDeltaDepth {
			return errors.New("the pack cannot be read: the base of a delta is missing")
		}
		pending = left
	}
	return nil
}

func (p *packReader) apply(d delta, base RawObject) error {
	size, err := deltaTargetSize(d.content)
	if err != nil {
		return err
	}
	if err := p.reserve(size); err != nil {
		return err
	}
	content, err := packfile.PatchDelta(base.Content, d.content)
	if err != nil {
		return fmt.Errorf("the pack cannot be read: %w", err)
	}
	p.add(d.at, RawObject{Kind: base.Kind, Content: content})
	return nil
}

func deltaTargetSize(content []byte) (int64, error) {
	_, first := binary.Uvarint(content)
	if first > 0 {
		if size, second := binary.Uvarint(content[first:]); second > 0 {
			return int64(size), nil
		}
	}
	return 0, errors.New("the pack cannot be read: a delta has no size")
}

// Pack collects objects without deltas, whose search costs more than sending small files. It grows without copying, because a
// first apply has hundreds of megabytes. It is safe for concurrent use until finished.
type Pack struct {
	mutex    sync.Mutex
	present  map[Hash]struct{}
	parts    [][]byte
	size     int // of the parts
	finished bool
}

const (
	packHeader = 12      // "PACK", version, count
	largePart  = 1 << 20 // bytes of a part
)

// NewPack returns an empty pack.
func NewPack() *Pack {
	p := &Pack{present: map[Hash]struct{}{}}
	p.write(make([]byte, packHeader))
	return p
}

// compressors are reused: making one takes longer than compressing a small pack. The default level clears half a megabyte per
// object, and shrinks manifests little more.
var compressors = sync.Pool{New: func() any {
	c := &compressor{}
	c.writer, _ = zlib.NewWriterLevel(&c.packed, zlib.BestSpeed)
	return c
}}

type compressor struct {
	packed bytes.Buffer
	writer *zlib.Writer
}

func (p *Pack) add(id Hash, kind plumbing.ObjectType, content []byte) {
	if !p.isNew(id) {
		return
	}
	c := compressors.Get().(*compressor)
	defer compressors.Put(c)
	c.packed.Reset()
	size := uint64(len(content))
	first := byte(kind)<<4 | byte(size&0xf)
	for size >>= 4; size > 0; size >>= 7 {
		c.packed.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
	}
	c.packed.WriteByte(first)
	c.writer.Reset(&c.packed)
	// Writing to memory cannot fail.
	_, _ = c.writer.Write(content)
	_ = c.writer.Close()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.write(c.packed.Bytes())
}

func (p *Pack) isNew(id Hash) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before := len(p.present)
	p.present[id] = struct{}{}
	return len(p.present) > before
}

// write adds bytes to the last part, or to a new one as large as all before.
func (p *Pack) write(content []byte) {
	last := len(p.parts) - 1
	if last < 0 || len(p.parts[last])+len(content) > cap(p.parts[last]) {
		p.parts = append(p.parts, make([]byte, 0, max(len(content), min(p.size, largePart))))
		last++
	}
	p.parts[last] = append(p.parts[last], content...)
	p.size += len(content)
}

// AddFile adds a file.
func (p *Pack) AddFile(id Hash, content []byte) { p.add(id, plumbing.BlobObject, content) }

// AddTree adds a tree.
func (p *Pack) AddTree(id Hash, content []byte) { p.add(id, plumbing.TreeObject, content) }

// AddFolder adds a folder with everything below it and returns its TreeID.
func (p *Pack) AddFolder(h *Hasher, files []File) (Hash, error) {
	return folderTree(h, files, p.AddFile, p.AddTree)
}

// Add adds an object of any kind.
func (p *Pack) Add(id Hash, o RawObject) { p.add(id, o.Kind, o.Content) }

// Finish ends the pack and returns its size in bytes.
func (p *Pack) Finish() int {
	if p.finished {
		return p.size
	}
	p.finished = true
	header := p.parts[0]
	copy(header, "PACK")
	binary.BigEndian.PutUint32(header[4:], packfile.VersionSupported)
	binary.BigEndian.PutUint32(header[8:], uint32(len(p.present)))
	h := sha1.New()
	for _, part := range p.parts {
		h.Write(part)
	}
	p.write(h.Sum(nil))
	return p.size
}

// Reader returns a reader of the finished pack.
func (p *Pack) Reader() io.Reader {
	p.Finish()
	parts := make([]io.Reader, len(p.parts))
	for i, part := range p.parts {
		parts[i] = bytes.NewReader(part)
	}
	return io.MultiReader(parts...)
}
