<?php

/* The library's interface, read from its files by PHP's own tokenizer, for the IDE stubs and the reference. */

declare(strict_types=1);

namespace Howdah\Tools;

final class Api
{
    /** @var list<array{doc: list<string>, head: string, items: list<array{doc: list<string>, signature: string}>}> */
    private array $blocks = [];

    public function __construct(string $directory)
    {
        $files = glob("$directory/*.php");
        $first = static fn (string $file): int => match (basename($file)) {
            'functions.php' => 0,
            'exceptions.php' => 1,
            default => 2,
        };
        usort($files, static fn (string $a, string $b): int => [$first($a), $a] <=> [$first($b), $b]);
        foreach ($files as $file) {
            $text = file_get_contents($file);
            if (str_contains($text, "\nnamespace Howdah;\n")) {
                $this->read($text);
            }
        }
    }

    public function stubs(): string
    {
        $out = "<?php\n\n/**\n * Howdah's async library, for IDEs and static analysers; never run. Generated from php/async/src by\n"
            . " * `make generate`; a test compares the two. Do not edit.\n */\n\nnamespace Howdah;\n";
        foreach ($this->blocks as ['doc' => $doc, 'head' => $head, 'items' => $items]) {
            $inner = $head === '' ? '' : '    ';
            $body = str_starts_with($head, 'interface') ? ';' : ' {}';
            if ($head !== '') {
                $out .= "\n" . implode("\n", $doc) . "\n$head\n{\n";
            }
            foreach ($items as $number => $item) {
                $out .= $number > 0 || $inner === '' ? "\n" : '';
                foreach ([...$item['doc'], $item['signature'] . $body] as $line) {
                    $out .= "$inner$line\n";
                }
            }
            $out .= $head === '' ? '' : "}\n";
        }

        return $out;
    }

    public function reference(): string
    {
        $out = "# Functions and classes of async mode\n\n<!-- Generated from php/async/src by `make generate`; a test compares the two. -->\n\n"
            . 'All of this exists only in async workers, in the namespace `Howdah`. Times are in seconds, those of `Timer` in milliseconds. '
            . "How to use it: [async.md](../guide/async.md); parameters in full: `php/stubs/async.stub.php`.\n";
        foreach ($this->blocks as ['doc' => $doc, 'head' => $head, 'items' => $items]) {
            if ($head === '') {
                $out .= "\n## Functions\n\n| function | |\n|---|---|\n";
            } else {
                $out .= "\n## `" . preg_replace('/^final /', '', $head) . "`\n\n" . self::prose($doc) . "\n";
                $out .= $items === [] ? '' : "\n| method | |\n|---|---|\n";
            }
            foreach ($items as $item) {
                $signature = str_replace(['public ', 'function ', '|'], ['', '', '\|'], $item['signature']);
                $out .= "| `$signature` | " . self::prose($item['doc']) . " |\n";
            }
        }

        return $out;
    }

    private function read(string $text): void
    {
        $tokens = \PhpToken::tokenize($text);
        $purpose = null;
        $doc = [];
        $depth = 0;
        $functions = ['doc' => [], 'head' => '', 'items' => []];
        $classes = [];
        for ($i = 0; $i < \count($tokens); ++$i) {
            $token = $tokens[$i];
            if ($token->is(T_COMMENT)) {
                $purpose ??= $token->text;
            } elseif ($token->is(T_DOC_COMMENT)) {
                $doc = self::lines($token->text);
            } elseif ($token->is(T_ATTRIBUTE)) {
                $i = self::behind($tokens, $i, '[', ']');
            } elseif ($depth === 0 && $token->is([T_FINAL, T_ABSTRACT, T_CLASS, T_INTERFACE]) || $depth === 0 && $token->is(T_FUNCTION)
                || $depth === 1 && $token->is(T_PUBLIC)) {
                $head = self::head($tokens, $i);
                if (preg_match('/\b(class|interface)\b/', $head) && $depth === 0) {
                    // Without a doc comment, a class gets its file's comment.
                    $hasNoText = array_filter($doc, static fn (string $line): bool => !str_contains($line, '@implements')) === [];
                    $classes[] = ['doc' => $hasNoText ? self::lines('/**' . substr((string) $purpose, 2)) : $doc, 'head' => $head, 'items' => []];
                } elseif (str_contains($head, 'function ') && !str_contains($head, '__destruct') && !str_contains(implode($doc), '@internal')) {
                    if ($depth === 0) {
                        $functions['items'][] = ['doc' => $doc, 'signature' => $head];
                    } else {
                        $classes[\count($classes) - 1]['items'][] = ['doc' => $doc, 'signature' => $head];
                    }
                }
                $doc = [];
                --$i;
            } elseif ($token->text === '{' || $token->is([T_CURLY_OPEN, T_DOLLAR_OPEN_CURLY_BRACES])) {
                ++$depth;
            } elseif ($token->text === '}') {
                --$depth;
                $doc = [];
            } elseif ($token->text === ';') {
                $doc = [];
            }
        }
        array_push($this->blocks, ...($functions['items'] === [] ? [] : [$functions]), ...$classes);
    }

    /**
     * Returns the tokens from here to the body in one line; the position is after it then.
     *
     * @param list<\PhpToken> $tokens
     */
    private static function head(array $tokens, int &$i): string
    {
        $head = '';
        for (; !\in_array($tokens[$i]->text, ['{', ';'], true); ++$i) {
            if ($tokens[$i]->is(T_ATTRIBUTE)) {
                $i = self::behind($tokens, $i, '[', ']');
            } elseif (!$tokens[$i]->is([T_COMMENT, T_DOC_COMMENT])) {
                $head .= $tokens[$i]->is(T_WHITESPACE) ? ' ' : $tokens[$i]->text;
            }
        }
        $head = preg_replace(['/\s+/', '/\( /', '/,? \)/', '/private readonly /'], [' ', '(', ')', ''], $head);

        return trim($head);
    }

    /** @param list<\PhpToken> $tokens */
    private static function behind(array $tokens, int $i, string $open, string $close): int
    {
        for ($depth = 0;; ++$i) {
            $depth += substr_count($tokens[$i]->text, $open) - substr_count($tokens[$i]->text, $close);
            if ($depth === 0) {
                return $i;
            }
        }
    }

    /** @return list<string> */
    private static function lines(string $comment): array
    {
        $lines = array_map(trim(...), explode("\n", $comment));
        $lines = array_map(static fn (string $line): string => str_starts_with($line, '/**') ? $line : " $line", $lines);
        if (\count($lines) > 1 && $lines[0] !== '/**') {
            $lines = ['/**', ' * ' . ltrim(substr($lines[0], 3)), ...\array_slice($lines, 1)];
            $last = array_pop($lines);
            array_push($lines, rtrim(substr($last, 0, -2)), ' */');
        }

        return $lines;
    }

    /** A doc comment's description for a table, without what it throws and its parameters. @param list<string> $doc */
    private static function prose(array $doc): string
    {
        $words = [];
        foreach ($doc as $line) {
            $line = trim($line, " */\t");
            if (str_starts_with($line, '@')) {
                break;
            }
            if ($line !== '') {
                $words[] = $line;
            }
        }

        return str_replace(['|', '<'], ['\|', '&lt;'], implode(' ', $words));
    }
}
