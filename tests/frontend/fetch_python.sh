#!/bin/sh
# Unpacks a Python of a newer Debian, with the libraries that it needs, into a folder:
#
#   fetch_python.sh 3.14 forky build/python3.14
#
# Nothing of the system changes. The archive is the one that apt is set up for.
set -eu
version=$1 suite=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: > "$state/status"
site=$(apt-get indextargets --format '$(SITE)' 'Origin: Debian' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $site $suite main" > "$state/sources.list"

# Against an empty list of what is installed apt takes all that is needed.
apt() {
  apt-get -q -o Dir::Etc::sourcelist="$state/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$state/lists" \
    -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}
apt update
apt install -y --no-install-recommends --download-only \
  "python$version" "python$version-venv"
for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done

# It is started by the loader that it came with: the one of the system may be older.
libraries=$(dirname "$(find "$folder/usr/lib" -name libc.so.6)")
loader=$(find "$libraries" -name 'ld-linux*.so.*')
python=$folder/usr/bin/python$version
mv "$python" "$python.bin"
cat > "$python" <<END
#!/bin/sh
exec "$loader" --argv0 "\$0" --library-path "$libraries" "$python.bin" "\$@"
END
chmod +x "$python"
# What environments begin with, pip, is looked for where Debian has it.
sed -i "s#'/usr/share/python-wheels/'#'$folder/usr/share/python-wheels/'#" \
  "$folder/usr/lib/python$version"/_sysconfigdata*.py
"$python" -c 'import ctypes, ssl, sys; print(sys.version)'
