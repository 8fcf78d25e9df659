package origin_test

import (
	"os"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }
