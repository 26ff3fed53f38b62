# A thin front for meson: `make` leaves build/pawl, build/libpawl.a and build/libpawl.so.
BUILD ?= build

all: $(BUILD)/build.ninja
	@meson compile -C $(BUILD) pawl:executable pawl:shared_library libpawl.a

$(BUILD)/build.ninja:
	@meson setup $(BUILD) --buildtype=release -Dprefix=/usr/local

test:
	@./script/test

# Style, without building: format, and the house rules where the tool is there.
check:
	@clang-format --dry-run --Werror $$(find src include tests -name '*.[ch]')
	@if [ -x tools/tidy ]; then tools/tidy; fi

install: all
	@meson compile -C $(BUILD) completion_bash completion_zsh completion_fish
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf build build-*

.PHONY: all test check install clean
