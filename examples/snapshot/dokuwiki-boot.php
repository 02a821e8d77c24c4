<?php
/**
 * DokuWiki in snapshot mode, unmodified: howdah serve /path/to/dokuwiki --mode snapshot --boot dokuwiki-boot.php
 *
 * Loads DokuWiki's functions and classes. Each request reads configuration, plugins, sessions, visitor and pages, as
 * without a snapshot, so all scripts can run on it. Set DOKUWIKI_DIR, or put this file next to doku.php. After an
 * update run `howdah reload`. `warmup = ["/doku.php"]` in howdah.toml compiles a page's regular expressions before the
 * snapshot.
 */

define('DOKU_INC', rtrim(getenv('DOKUWIKI_DIR') ?: __DIR__, '/') . '/');

require_once DOKU_INC . 'vendor/autoload.php';
require_once DOKU_INC . 'inc/load.php';

(static function (): void {
    foreach (['Action', 'Cache', 'ChangeLog', 'Extension', 'File', 'Form', 'Input', 'Menu', 'Parsing', 'Search', 'Ui', 'Utf8'] as $part) {
        if (!is_dir(DOKU_INC . "inc/$part")) {
            continue;
        }
        foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator(DOKU_INC . "inc/$part", FilesystemIterator::SKIP_DOTS)) as $file) {
            $name = substr($file->getPathname(), strlen(DOKU_INC . 'inc/'));
            if (str_ends_with($name, '.php')) {
                class_exists('dokuwiki\\' . strtr(substr($name, 0, -4), '/', '\\'));
            }
        }
    }
})();
