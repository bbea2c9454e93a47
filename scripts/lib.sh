# Shared by the scripts: where things are kept, how they talk. Source it.
# The cache lies outside the tree, so that a fresh clone finds what an earlier one built.
DYAD_CACHE=${DYAD_CACHE:-/var/cache/dyad}

say() { printf '==> %s\n' "$*" >&2; }
die() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

# The mirror that this machine already uses; other Debian releases are taken from the same one.
debian_mirror() {
    local mirror
    mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk '$3 == "main" && $1 !~ /security/ { print $1; exit }')
    [ -n "$mirror" ] || die "no Debian mirror is set up for apt" "add one to /etc/apt/sources.list.d and run apt-get update"
    printf '%s\n' "$mirror"
}
