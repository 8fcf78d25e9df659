package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// sortable are the types by which lists can be sorted.
var sortable = []*cel.Type{
	cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType, cel.StringType, cel.BytesType,
}

// costsOfSorting count what sorting costs, as the library does. The library's own counting panics where there is no list:
// it is asked also where what is to be sorted is not known yet, or an error.
func costsOfSorting() []interpreter.CostTrackerOption {
	cost := func(keys int) interpreter.FunctionTracker {
		return func(args []ref.Val, _ ref.Val) *uint64 {
			size := sizeOf(args[keys])
			cost := uint64(2.1*size*size) + 1
			return &cost
		}
	}
	options := make([]interpreter.CostTrackerOption, 0, 2*len(sortable))
	for _, kind := range sortable {
		options = append(options,
			interpreter.OverloadCostTracker(fmt.Sprintf("list_%s_sort", kind.TypeName()), cost(0)),
			interpreter.OverloadCostTracker(fmt.Sprintf("list_%s_sortByAssociatedKeys", kind.TypeName()), cost(1)))
	}
	return options
}
