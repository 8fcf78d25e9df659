package renderer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// maxOutput bounds the YAML of a result.
const maxOutput = 16 << 20

var errOutput = fmt.Errorf("it renders more than %d MiB", maxOutput>>20)

// describedObject is an object whose YAML follows the header.
type describedObject struct {
	objects.FinalObject
	YAML   struct{} `json:",omitzero"` // hides FinalObject.YAML
	Length int
}

type renderingHeader struct {
	*objects.Rendering
	Objects []describedObject // hides Rendering.Objects
}

// encode writes a header as a line of JSON, then the YAML of all objects.
func encode(result *objects.Rendering) ([]byte, error) {
	all := make([]describedObject, len(result.Objects))
	size := 0
	for i, o := range result.Objects {
		all[i] = describedObject{FinalObject: o, Length: len(o.YAML)}
		size += len(o.YAML)
	}
	if size > maxOutput {
		return nil, errOutput
	}
	text, err := json.Marshal(renderingHeader{result, all})
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	for _, o := range result.Objects {
		text = append(text, o.YAML...)
	}
	return text, nil
}

func decode(text []byte) (*objects.Rendering, error) {
	line, rest, has := bytes.Cut(text, []byte("\n"))
	if !has {
		return nil, errors.New("a result has no end")
	}
	result := &objects.Rendering{}
	header := renderingHeader{Rendering: result}
	if err := json.Unmarshal(line, &header); err != nil {
		return nil, err
	}
	result.Objects = make([]objects.FinalObject, len(header.Objects))
	for i, d := range header.Objects {
		if d.Length < 0 || d.Length > len(rest) {
			return nil, errors.New("a result is cut off")
		}
		result.Objects[i] = d.FinalObject
		result.Objects[i].YAML = rest[:d.Length:d.Length]
		rest = rest[d.Length:]
	}
	if len(rest) > 0 {
		return nil, errors.New("a result has more than it describes")
	}
	return result, nil
}

// maxFrame bounds a message between processes.
const maxFrame = 64 << 20

func writeFrame(to io.Writer, message []byte) error {
	if len(message) > maxFrame {
		return fmt.Errorf("a message has more than %d MiB", maxFrame>>20)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message)))
	_, err := to.Write(append(frame, message...))
	return err
}

func readFrame(from io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > maxFrame {
		return nil, fmt.Errorf("a message has more than %d MiB", maxFrame>>20)
	}
	message := make([]byte, size)
	_, err := io.ReadFull(from, message)
	return message, err
}
