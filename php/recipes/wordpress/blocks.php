<?php

/**
 * Data that WordPress's block themes compute again for every page, computed once per boot. The end of the recipe
 * wordpress.php, which calls it; `strict_types` is set there.
 */

namespace Howdah\Recipes\WordPress;

/** Data that block themes compute from their files for every page. */
final class Blocks
{
    /** Templates by type and name, as in the theme's files. */
    private static array $templates = [];

    /** Reads the templates once: WordPress reads all of them several times per page. */
    public static function keepTemplates(): void
    {
        if (!\function_exists('wp_is_block_theme') || !wp_is_block_theme()) {
            return;
        }
        foreach (['wp_template', 'wp_template_part'] as $type) {
            foreach (get_block_templates([], $type) as $template) {
                self::$templates[$type][$template->slug] = $template;
            }
        }
        add_filter('pre_get_block_templates', [self::class, 'templates'], PHP_INT_MAX, 3);
    }

    public static function templates(mixed $templates, array $query, string $type): mixed
    {
        // Handles only the query of a page: templates with these names. WordPress handles all others.
        if ($templates !== null || !isset($query['slug__in']) || array_diff(array_keys($query), ['slug__in', 'theme']) !== []) {
            return $templates;
        }
        // Edited templates are posts; if there are any, WordPress handles everything.
        static $edited = null;
        global $wpdb;
        $edited ??= $wpdb->get_var("SELECT 1 FROM $wpdb->posts WHERE post_type IN ('wp_template', 'wp_template_part') LIMIT 1") !== null;
        if ($edited || ($query['theme'] ?? get_stylesheet()) !== get_stylesheet()) {
            return null;
        }
        $asked = array_intersect_key(self::$templates[$type] ?? [], array_flip($query['slug__in']));
        $found = array_map(static fn (object $template): object => clone $template, array_values($asked));

        return apply_filters('get_block_templates', $found, $query, $type);
    }

    /**
     * WordPress before 6.2 assembles the theme's settings again for each query, dozens of times per page. Its own functions
     * that query them while blocks are rendered get copies in this namespace, which query them only once.
     */
    public static function shareSettings(): void
    {
        if (version_compare($GLOBALS['wp_version'], '6.2-alpha', '>=') || !\function_exists('wp_get_global_settings')) {
            return;
        }
        // Settings made by users are in a post; it is tracked like everything that the boot reads.
        wp_get_global_settings();
        foreach ($GLOBALS['wp_filter']['render_block']->callbacks ?? [] as $priority => $callbacks) {
            foreach ($callbacks as $id => ['function' => $function]) {
                $copy = \is_string($function) ? self::copy($function) : null;
                if ($copy !== null) {
                    // Under the same key, so that code which removes the callback later removes the copy.
                    $GLOBALS['wp_filter']['render_block']->callbacks[$priority][$id]['function'] = $copy;
                }
            }
        }
    }

    /** Returns a copy of a function of WordPress that queries the theme's settings; null for any other function. */
    private static function copy(string $name): ?string
    {
        $function = new \ReflectionFunction($name);
        $file = (string) $function->getFileName();
        $core = realpath(\ABSPATH . \WPINC) . '/';
        if (!str_starts_with((string) realpath($file), $core) || str_contains($name, '\\')) {
            return null;
        }
        $lines = \array_slice(file($file), $function->getStartLine() - 1, $function->getEndLine() - $function->getStartLine() + 1);
        $tokens = \PhpToken::tokenize('<?php ' . implode('', $lines));
        $words = array_values(array_filter($tokens, static fn (\PhpToken $token): bool => !$token->isIgnorable()));
        $asks = array_filter($words, static fn (\PhpToken $token): bool => $token->text === 'wp_get_global_settings');
        $typed = array_filter($function->getParameters(), static fn (\ReflectionParameter $one): bool => $one->hasType());
        if ($asks === [] || $typed !== [] || $function->hasReturnType()) {
            return null;
        }
        // Classes are WordPress's, not of this namespace.
        foreach ($words as $at => $token) {
            $isClass = ($words[$at + 1]->id ?? null) === T_DOUBLE_COLON || \in_array($words[$at - 1]->id ?? null, [T_NEW, T_INSTANCEOF], true);
            if ($token->id === T_STRING && $isClass) {
                $token->text = '\\' . $token->text;
            }
        }
        array_shift($tokens);
        eval('namespace ' . __NAMESPACE__ . '; ' . implode('', array_column($tokens, 'text')));

        return __NAMESPACE__ . '\\' . $name;
    }
}

/** WordPress's function of that name, for the copies: queries once until other blocks or theme features are registered. */
function wp_get_global_settings(array $path = [], array $context = []): mixed
{
    static $known = [], $features = null, $blocks = 0;
    if (isset($context['block_name'])) {
        return \wp_get_global_settings($path, $context);
    }
    $now = \count(\WP_Block_Type_Registry::get_instance()->get_all_registered());
    if ($features !== $GLOBALS['_wp_theme_features'] || $blocks !== $now) {
        [$known, $features, $blocks] = [[], $GLOBALS['_wp_theme_features'], $now];
    }
    $all = $known[$context['origin'] ?? ''] ??= \wp_get_global_settings([], $context);

    return _wp_array_get($all, $path, $all);
}
