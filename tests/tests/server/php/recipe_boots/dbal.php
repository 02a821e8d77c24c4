<?php
namespace Doctrine\DBAL;

/** A stand-in for Doctrine's class of this name: it connects when it is first asked. */
final class Connection
{
    private ?\PDO $pdo = null;

    public function getParams(): array
    {
        return ['driver' => '__DRIVER__'];
    }

    public function isConnected(): bool
    {
        return $this->pdo !== null;
    }

    public function close(): void
    {
        $this->pdo = null;
    }

    public function getNativeConnection(): \PDO
    {
        return $this->pdo ??= new \PDO('__DSN__', 'tester', '');
    }

    public function fetchOne(string $sql): mixed
    {
        return $this->getNativeConnection()->query($sql)->fetchColumn();
    }

    public function id(): string
    {
        return (string) $this->fetchOne('SELECT __ID__, __SLEEP__(0.01)');
    }
}
