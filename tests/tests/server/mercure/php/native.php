<?php
// As `Symfony\Component\Mercure\FrankenPhpHub::publish()` calls it: six arguments, null for those not given.
$publish = fn (array $topics, string $data, bool $private, ?string $id, ?string $type, ?int $retry): string
    => mercure_publish($topics, $data, $private, $id, $type, $retry);
echo json_encode([
    $publish(['https://example.com/books/1', 'b'], 'plain', false, null, null, null),
    $publish(['https://example.com/books/1'], 'native', false, 'urn:x:1', 'kind', 5),
]);
