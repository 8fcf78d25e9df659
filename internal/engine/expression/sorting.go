package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

var sortable = []*cel.Type{
	cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType, cel.StringType, cel.BytesType,
}

// costsOfSorting counts like the library, whose own functions panic if the argument is unknown or an error.
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
