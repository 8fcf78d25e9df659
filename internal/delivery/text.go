package delivery

import (
	"fmt"
	"strings"
)

// mostNamed is how many names a problem lists.
const mostNamed = 10

func count(number int, one, many string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, many)
}

func shortened(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}

func lines(texts []string) string {
	const most = 50
	if len(texts) <= most {
		return strings.Join(texts, "\n")
	}
	return fmt.Sprintf("%s\n… and %d more", strings.Join(texts[:most], "\n"), len(texts)-most)
}
