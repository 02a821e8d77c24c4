<?php
namespace Doctrine\DBAL;

/** A stand-in for Doctrine's class of this name: it connects when it is first asked. */
final class Connection
{
    private ?\PDO $pdo = null;

    public function getParams(): array
    {
        return ['driver' => 'pdo_mysql'];
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
        return $this->pdo ??= new \PDO('mysql:host=127.0.0.1;port=__PORT__;dbname=mysql', 'tester', '');
    }

    public function id(): string
    {
        return (string) $this->getNativeConnection()->query('SELECT CONNECTION_ID(), SLEEP(0.01)')->fetchColumn();
    }
}
