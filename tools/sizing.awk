# Writes the results of BenchmarkSizing as a table: a row for each number of assignments.

# thousands writes a number with commas.
function thousands(n) {
	while (n ~ /^[0-9][0-9][0-9][0-9]/) {
		sub(/[0-9][0-9][0-9]($|,)/, ",&", n)
	}
	return n
}

function largest(name, value) {
	if (value > most[size, name]) {
		most[size, name] = value
	}
}

/^BenchmarkSizing\// {
	split($1, name, "/")
	size = name[2]
	step = name[3]
	sub(/-[0-9]+$/, "", step)
	if (!(size in seen)) {
		seen[size] = 1
		sizes[++number] = size
	}
	for (i = 3; i < NF; i += 2) {
		unit = $(i + 1)
		if (unit ~ /processor-s/) {
			seconds[size, step] += $i
		} else {
			largest(unit, $i)
		}
	}
}

END {
	print "| assignments | first plan | first apply | plan without changes | memory of the provider | memory of Terraform | state |"
	print "|---|---|---|---|---|---|---|"
	for (i = 1; i <= number; i++) {
		size = sizes[i]
		printf "| %s | %.1f s | %.1f s | %.1f s | %d MiB | %d MiB | %d KiB |\n", thousands(size), \
			seconds[size, "plan-create"], seconds[size, "apply-create"], seconds[size, "plan-no-op"], \
			most[size, "peak-MiB"], most[size, "tool-peak-MiB"], most[size, "state-MiB"] * 1024
	}
}
