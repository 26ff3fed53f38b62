# A thin front for meson: `make` leaves build/pawl, build/libpawl.a and build/libpawl.so.
BUILD ?= build
PREFIX ?= /usr/local

all: $(BUILD)/build.ninja
	@meson compile -C $(BUILD) pawl:executable pawl:shared_library libpawl.a

$(BUILD)/build.ninja:
	@meson setup $(BUILD) --buildtype=release -Dprefix=$(PREFIX)

test:
	@./script/test

# Without building: the lines that were changed, and the rules of the house.
check:
	@tools/lint format
	@tools/tidy

# With PREFIX (/usr/local) and DESTDIR (none). `lib`, whatever meson takes the machine for: there the loader
# and pkg-config look.
install: all
	@meson configure $(BUILD) -Dprefix=$(PREFIX) -Dlibdir=lib
	@ninja -C $(BUILD) $$(tools/installed $(BUILD))
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true

# The library in one file and its header: build/amalgamation/pawl.c and pawl.h.
amalgamation: $(BUILD)/build.ninja
	@ninja -C $(BUILD) amalgamation/pawl.c

# A Debian package of a release build: pawl_VERSION_ARCHITECTURE.deb.
deb:
	@./script/deb

# A tarball for any machine with the C library of Debian 12 or newer: pawl-VERSION-ARCHITECTURE.tar.gz.
dist:
	@./script/dist

clean:
	@rm -rf build build-*

.PHONY: all test check install amalgamation deb dist clean
